SELECT h.attempt, h.failures, h.crashes, h.checkpoint, h.worker, h.started, h.expires, l.keys
FROM leases h JOIN lanes l ON l.id = h.lane
WHERE h.task = ?1
