-- Where the task entered, if it has not moved since.
SELECT lane, stamp, attempt, failures, crashes FROM ready WHERE line = ?1 AND tier = ?2 AND stamp = ?3 AND task = ?4
