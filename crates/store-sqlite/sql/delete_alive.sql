DELETE FROM alive WHERE deadline = ?1 AND seq = ?2
