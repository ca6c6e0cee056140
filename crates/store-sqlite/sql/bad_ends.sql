-- Failed, timed out, cancelled.
SELECT task, attempt FROM ended WHERE task >= ?1 AND task < ?2 AND state IN (6, 7, 8) ORDER BY task
