INSERT INTO lanes (id, line, queue, handler, keys) VALUES (?1, ?2, ?3, ?4, ?5)
