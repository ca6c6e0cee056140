SELECT since, attempt, failures, crashes, checkpoint FROM ready WHERE line = ?1 AND tier = ?2 AND stamp = ?3 AND task = ?4
