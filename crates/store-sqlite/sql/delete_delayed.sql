DELETE FROM delayed WHERE due = ?1 AND task = ?2
