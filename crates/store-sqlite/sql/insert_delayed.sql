INSERT INTO delayed (due, task, lane, tier, attempt, failures, crashes, checkpoint)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
