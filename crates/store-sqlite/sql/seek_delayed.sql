SELECT lane, due, attempt, failures, crashes FROM delayed WHERE due = ?1 AND task = ?2
