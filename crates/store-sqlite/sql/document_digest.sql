SELECT sha256 FROM documents WHERE seq = ?1
