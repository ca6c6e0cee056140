DELETE FROM dead WHERE task = ?1
