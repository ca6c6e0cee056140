UPDATE leases SET flow = ?2 WHERE task = ?1
