-- A job of a queue has a head, and then a flow behind it, only once it was paused or made to wait.
SELECT j.created, t.name, j.flow, r.body
FROM jobs j JOIN tenants t ON t.id = j.tenant LEFT JOIN runs r ON r.seq = j.seq
WHERE j.seq = ?1
