INSERT INTO held (task, lane, tier, stamp, since, due, attempt, failures, crashes, checkpoint)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
