INSERT INTO leases
    (task, attempt, failures, crashes, spec, lane, tier, stamp, since, started, expires, times_out, worker, checkpoint)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
