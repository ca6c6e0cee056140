SELECT lane, state FROM ended WHERE task >= ?1 AND task < ?2
