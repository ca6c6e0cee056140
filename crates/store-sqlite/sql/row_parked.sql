SELECT since, attempt, failures, crashes, checkpoint FROM parked WHERE lane = ?1 AND tier = ?2 AND stamp = ?3 AND task = ?4
