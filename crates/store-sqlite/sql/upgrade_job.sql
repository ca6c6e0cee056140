UPDATE jobs SET flow = ?2 WHERE seq = ?1
