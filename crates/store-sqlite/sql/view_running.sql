SELECT worker, count(*) FROM leases GROUP BY worker
