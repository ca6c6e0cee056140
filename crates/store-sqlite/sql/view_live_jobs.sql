-- Jobs that have not ended: heads that live, and jobs of queues whose task stands somewhere.
SELECT seq FROM alive
UNION SELECT task >> 20 FROM ready
UNION SELECT task >> 20 FROM parked
UNION SELECT task >> 20 FROM delayed
UNION SELECT task >> 20 FROM leases
ORDER BY 1
