-- The fence: only the attempt that holds the lease can end it.
DELETE FROM leases WHERE task = ?1 AND attempt = ?2
RETURNING failures, crashes, spec, lane, tier, stamp, since, checkpoint
