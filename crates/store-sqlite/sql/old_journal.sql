-- The newest entry is not among them: the next number follows from it.
SELECT n, at FROM journal WHERE n < (SELECT max(n) FROM journal) ORDER BY n LIMIT ?1
