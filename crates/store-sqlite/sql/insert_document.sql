INSERT INTO documents (seq, name, media_type, size, sha256, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
