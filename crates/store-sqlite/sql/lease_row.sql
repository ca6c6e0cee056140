-- Read and delete are two statements, as DELETE ... RETURNING goes through a temporary table and costs four times as
-- much.
SELECT failures, crashes, spec, lane, tier, stamp, since, checkpoint, flow, started
FROM leases WHERE task = ?1 AND attempt = ?2
