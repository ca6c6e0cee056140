SELECT next FROM fair WHERE line = ?1 AND tier = ?2 AND tenant = ?3
