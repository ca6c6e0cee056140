SELECT attempt FROM leases WHERE task = ?1
