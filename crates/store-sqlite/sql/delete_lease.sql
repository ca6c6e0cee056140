-- The fence: only the attempt that holds the lease ends it.
DELETE FROM leases WHERE task = ?1 AND attempt = ?2
