SELECT h.attempt, h.failures, h.crashes, h.checkpoint, h.due, 0 AS parked, l.keys, NULL AS since, 1 AS held
FROM held h JOIN lanes l ON l.id = h.lane
WHERE h.task = ?1
