SELECT w.job, j.created FROM waits w JOIN jobs j ON j.seq = w.job WHERE w.waiter = ?1 ORDER BY w.job
