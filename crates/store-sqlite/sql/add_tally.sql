INSERT INTO tally (line, state, n) VALUES (?1, ?2, ?3)
ON CONFLICT (line, state) DO UPDATE SET n = n + excluded.n
