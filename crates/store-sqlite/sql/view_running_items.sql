SELECT count(*) FROM leases WHERE task >= ?1 AND task < ?2
