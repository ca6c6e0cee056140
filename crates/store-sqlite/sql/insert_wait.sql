INSERT OR IGNORE INTO waits (job, waiter) VALUES (?1, ?2)
