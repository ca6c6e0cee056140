-- Leases are as many as there are slots, so reading them all beats an index that every heartbeat would write.
SELECT task, attempt, expires, times_out, started FROM leases
WHERE min(expires, ifnull(times_out, expires)) <= ?1
ORDER BY min(expires, ifnull(times_out, expires)), task
LIMIT ?2
