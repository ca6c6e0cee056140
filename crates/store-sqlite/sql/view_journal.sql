SELECT n, at, events FROM journal WHERE n >= ?1 ORDER BY n
