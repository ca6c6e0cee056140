SELECT at FROM ended WHERE task = ?1
