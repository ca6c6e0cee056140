-- A lease takes or parks the head of a tier without gaps, so one statement removes all of it.
DELETE FROM ready WHERE line = ?1 AND tier = ?2 AND (stamp, task) <= (?3, ?4)
