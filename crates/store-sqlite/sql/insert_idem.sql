-- A slice that was moved before a crash is moved again.
INSERT OR IGNORE INTO idem (hash, job) VALUES (?1, ?2)
