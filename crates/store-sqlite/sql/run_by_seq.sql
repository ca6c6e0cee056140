SELECT r.body, j.flow, j.created, j.tenant, j.tier, j.entry, j.payload, j.meta
FROM runs r JOIN jobs j ON j.seq = r.seq
WHERE r.seq = ?1
