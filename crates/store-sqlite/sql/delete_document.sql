DELETE FROM documents WHERE seq = ?1
