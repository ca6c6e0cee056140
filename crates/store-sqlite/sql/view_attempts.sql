SELECT attempt, at, how, message FROM attempts WHERE task = ?1 ORDER BY n
