DELETE FROM idem WHERE hash = ?1 AND job = ?2
