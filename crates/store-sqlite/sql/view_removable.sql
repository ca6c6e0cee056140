SELECT j.seq, j.created, r.state AS run_state, r.body AS run_body, e.state AS ended_state, e.at AS ended_at,
       EXISTS (SELECT 1 FROM dead d WHERE d.task >= j.seq << 20 AND d.task < (j.seq + 1) << 20) AS dead
FROM jobs j
LEFT JOIN runs r ON r.seq = j.seq
LEFT JOIN ended e ON e.task = j.seq << 20
WHERE j.seq > ?1
ORDER BY j.seq
