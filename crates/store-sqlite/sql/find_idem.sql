SELECT job FROM idem WHERE hash = ?1 ORDER BY job DESC
