INSERT OR REPLACE INTO rules (key, rule, operator) VALUES (?1, ?2, ?3)
