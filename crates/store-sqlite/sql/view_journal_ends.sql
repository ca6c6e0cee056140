SELECT n, events, (SELECT min(n) FROM journal)
FROM journal WHERE n = (SELECT max(n) FROM journal)
