SELECT lane, stamp, attempt, failures, crashes FROM ready WHERE line = ?1 AND tier = ?2 AND task = ?3
