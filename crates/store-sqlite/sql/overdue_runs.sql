SELECT seq FROM runs WHERE alive <= ?1 ORDER BY alive, seq LIMIT ?2
