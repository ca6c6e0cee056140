-- The version, and whether it is the current one.
SELECT f.version, f.applied IS NOT NULL AND f.applied = (SELECT max(applied) FROM flows WHERE implicit = 0 AND name = f.name)
FROM flows f WHERE f.id = ?1
