SELECT lane, stamp, attempt, failures, crashes FROM parked WHERE task = ?1
