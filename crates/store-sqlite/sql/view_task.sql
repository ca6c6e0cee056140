SELECT ifnull(t.leg, t.lane), t.tier, t.entry, t.payload, l.line, l.keys
FROM tasks t JOIN lanes l ON l.id = ifnull(t.leg, t.lane)
WHERE t.task = ?1
