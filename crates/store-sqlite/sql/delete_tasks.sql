DELETE FROM tasks WHERE task >= ?1 AND task < ?2
