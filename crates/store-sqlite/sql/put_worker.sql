INSERT INTO workers (name, note, first_seen, last_seen) VALUES (?1, ?2, ?3, ?3)
ON CONFLICT (name) DO UPDATE SET note = excluded.note, last_seen = excluded.last_seen
