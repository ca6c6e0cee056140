-- The task of a queue's job that has moved since it entered, found by scans.
SELECT d.attempt, d.failures, d.crashes, d.checkpoint, d.due, 0 AS parked, l.keys, NULL AS since, 0 AS held
FROM delayed d JOIN lanes l ON l.id = d.lane WHERE d.task = ?3
UNION ALL
SELECT p.attempt, p.failures, p.crashes, p.checkpoint, NULL, 1, l.keys, p.since, 0
FROM parked p JOIN lanes l ON l.id = p.lane WHERE p.task = ?3
UNION ALL
SELECT r.attempt, r.failures, r.crashes, r.checkpoint, NULL, 0, l.keys, r.since, 0
FROM ready r JOIN lanes l ON l.id = r.lane WHERE r.line = ?1 AND r.tier = ?2 AND r.task = ?3
