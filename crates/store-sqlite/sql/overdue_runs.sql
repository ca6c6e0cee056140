SELECT seq FROM alive WHERE deadline <= ?1 ORDER BY deadline, seq LIMIT ?2
