DELETE FROM attempts WHERE task >= ?1 AND task < ?2
