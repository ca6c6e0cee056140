INSERT INTO daily (day, what, n) VALUES (?1, ?2, ?3)
ON CONFLICT (day, what) DO UPDATE SET n = n + excluded.n
