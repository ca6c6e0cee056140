UPDATE leases SET expires = ?3 WHERE task = ?1 AND attempt = ?2
