SELECT state, attempt FROM ended WHERE task = ?1
