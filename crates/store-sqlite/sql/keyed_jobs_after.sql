-- What a key is unique in: the handler, or the flow, apart from each other.
SELECT j.seq, j.tenant, j.spec, j.key, j.bucket,
       CASE WHEN f.implicit THEN f.name ELSE 'flow:' || f.name END AS flow_scope
FROM jobs j LEFT JOIN flows f ON f.id = j.flow
WHERE j.seq > ?1 AND j.key IS NOT NULL
ORDER BY j.seq
