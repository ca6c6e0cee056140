SELECT p.since, p.attempt, p.failures, p.crashes, p.checkpoint, j.created, j.spec, j.tenant, j.key, j.flow, iif(j.flow IS NULL, j.payload, NULL),
       iif(j.flow IS NULL, j.meta, NULL)
FROM parked p CROSS JOIN jobs j ON j.seq = p.task >> 20
WHERE p.lane = ?1 AND p.tier = ?2 AND p.stamp = ?3 AND p.task = ?4
