-- By name, else the whole range of jobs is read, of which few may have a context.
SELECT seq, meta FROM jobs INDEXED BY jobs_context
WHERE substr(meta, 1, 11) = '{"context":' AND seq > ?1 AND seq < ?2
ORDER BY seq DESC
