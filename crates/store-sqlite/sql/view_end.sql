SELECT e.state, e.at, e.attempt, e.failures, e.crashes, e.output, l.keys, d.reason
FROM ended e JOIN lanes l ON l.id = e.lane LEFT JOIN dead d ON d.task = e.task
WHERE e.task = ?1
