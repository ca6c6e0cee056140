SELECT task, lane, tier, stamp, since, due, attempt, failures, crashes, checkpoint
FROM held WHERE task >= ?1 AND task < ?2 ORDER BY task
