INSERT INTO specs (id, body) VALUES (?1, ?2)
