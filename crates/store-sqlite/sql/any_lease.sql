SELECT 1 FROM leases WHERE task >= ?1 AND task < ?2 LIMIT 1
