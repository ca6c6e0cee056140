SELECT d.due, d.task, d.lane, d.attempt, d.failures, d.crashes, d.checkpoint, j.tier, j.tenant
FROM delayed d CROSS JOIN jobs j ON j.seq = d.task >> 20
WHERE d.due <= ?1
ORDER BY d.due, d.task
LIMIT ?2
