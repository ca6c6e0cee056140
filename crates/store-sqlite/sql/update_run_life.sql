UPDATE runs SET state = ?2, body = ?3, alive = ?4, output = ?5 WHERE seq = ?1
