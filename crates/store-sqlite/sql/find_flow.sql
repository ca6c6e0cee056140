SELECT id FROM flows WHERE implicit = ?1 AND name = ?2 AND hash = ?3
