INSERT OR REPLACE INTO fair (line, tier, tenant, next) VALUES (?1, ?2, ?3, ?4)
