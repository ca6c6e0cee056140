DELETE FROM rules WHERE key = ?1
