INSERT OR REPLACE INTO buckets (key, tat) VALUES (?1, ?2)
