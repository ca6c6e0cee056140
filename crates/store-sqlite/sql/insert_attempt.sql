INSERT INTO attempts (task, n, attempt, at, how, message)
VALUES (?1, (SELECT count(*) FROM attempts WHERE task = ?1), ?2, ?3, ?4, ?5)
