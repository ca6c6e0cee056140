INSERT INTO ended (task, state, at, attempt, failures, crashes, lane, output) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
