SELECT implicit, version, body FROM flows WHERE id = ?1
