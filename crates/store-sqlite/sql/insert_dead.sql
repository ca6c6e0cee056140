INSERT INTO dead (task, at, reason, line) VALUES (?1, ?2, ?3, ?4)
