-- A task that stands where its entry says, found by seeks.
SELECT r.attempt, r.failures, r.crashes, r.checkpoint, NULL AS due, 0 AS parked, l.keys, r.since, 0 AS held
FROM ready r JOIN lanes l ON l.id = r.lane WHERE r.line = ?1 AND r.tier = ?3 AND r.stamp = ?4 AND r.task = ?5
UNION ALL
SELECT p.attempt, p.failures, p.crashes, p.checkpoint, NULL, 1, l.keys, p.since, 0
FROM parked p JOIN lanes l ON l.id = p.lane WHERE p.lane = ?2 AND p.tier = ?3 AND p.stamp = ?4 AND p.task = ?5
UNION ALL
SELECT d.attempt, d.failures, d.crashes, d.checkpoint, d.due, 0, l.keys, NULL, 0
FROM delayed d JOIN lanes l ON l.id = d.lane WHERE d.due = ?4 AND d.task = ?5
