UPDATE flows SET applied = NULL WHERE implicit = 0 AND name = ?1 AND applied IS NOT NULL
