UPDATE tasks SET entry = NULL, leg = NULL WHERE task = ?1
