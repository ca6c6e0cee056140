UPDATE tasks SET entry = ?2, leg = nullif(?3, lane) WHERE task = ?1
