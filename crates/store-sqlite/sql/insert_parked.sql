INSERT INTO parked (lane, tier, stamp, task, since, attempt, failures, crashes, checkpoint)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
