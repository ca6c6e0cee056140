SELECT f.name, f.version, f.hash, f.created, f.body,
       f.applied IS NOT NULL AND f.applied = (SELECT max(a.applied) FROM flows a WHERE a.implicit = 0 AND a.name = f.name)
FROM flows f WHERE f.implicit = 0 AND f.name = ?1 AND (?2 IS NULL OR f.version = ?2)
ORDER BY f.version
