SELECT f.name, f.version, f.hash, f.created, f.body,
       f.applied IS NOT NULL AND f.applied = (SELECT max(a.applied) FROM flows a WHERE a.implicit = 0 AND a.name = f.name)
FROM flows f WHERE f.implicit = 0 AND f.applied IS NOT NULL AND (?1 IS NULL OR f.name = ?1)
ORDER BY f.name, f.version
