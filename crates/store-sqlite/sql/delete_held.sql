DELETE FROM held WHERE task = ?1
