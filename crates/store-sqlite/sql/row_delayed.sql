SELECT due, attempt, failures, crashes, checkpoint FROM delayed WHERE due = ?1 AND task = ?2
