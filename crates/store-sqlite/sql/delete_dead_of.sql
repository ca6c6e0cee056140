DELETE FROM dead WHERE task >= ?1 AND task < ?2
