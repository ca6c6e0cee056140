DELETE FROM delayed WHERE (due, task) <= (?1, ?2)
