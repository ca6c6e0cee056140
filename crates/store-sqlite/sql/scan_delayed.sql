SELECT lane, due, attempt, failures, crashes FROM delayed WHERE task = ?1
