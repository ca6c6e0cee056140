DELETE FROM ended WHERE task = ?1
