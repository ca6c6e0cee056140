DELETE FROM waits WHERE job = ?1
