SELECT 1 FROM dead WHERE task = ?1
