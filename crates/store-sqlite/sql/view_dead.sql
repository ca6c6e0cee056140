SELECT d.task, j.created, j.key, l.queue, l.handler, d.at, d.reason, e.attempt, e.failures, e.crashes,
       (SELECT a.message FROM attempts a WHERE a.task = d.task AND a.how <> 'stale' ORDER BY a.n DESC LIMIT 1),
       j.flow, r.body
FROM dead d
JOIN jobs j ON j.seq = d.task >> 20
JOIN ended e ON e.task = d.task
JOIN lanes l ON l.id = d.line
LEFT JOIN runs r ON r.seq = j.seq
WHERE d.task > ?1 AND (?2 IS NULL OR l.queue = ?2) AND (?3 IS NULL OR l.handler = ?3)
ORDER BY d.task
LIMIT ?4
