SELECT t.task, ifnull(t.leg, t.lane), t.tier, t.entry FROM tasks t
WHERE t.task >= ?1 AND t.task < ?2 AND NOT EXISTS (SELECT 1 FROM ended e WHERE e.task = t.task)
ORDER BY t.task
