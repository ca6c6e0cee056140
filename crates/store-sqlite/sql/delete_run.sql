DELETE FROM runs WHERE seq = ?1
