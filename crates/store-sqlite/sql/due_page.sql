SELECT d.due, d.task, d.lane, d.attempt, d.failures, d.crashes, d.checkpoint, d.tier, j.tenant, j.flow IS NOT NULL
FROM delayed d CROSS JOIN jobs j ON j.seq = d.task >> 20
WHERE d.due <= ?1
ORDER BY d.due, d.task
LIMIT ?2
