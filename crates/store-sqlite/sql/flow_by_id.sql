SELECT implicit, body FROM flows WHERE id = ?1
