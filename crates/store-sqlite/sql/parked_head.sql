SELECT stamp, task, since FROM parked WHERE lane = ?1 AND tier = ?2 ORDER BY stamp, task LIMIT 1
