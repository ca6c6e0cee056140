SELECT output FROM ended WHERE task = ?1
