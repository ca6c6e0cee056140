INSERT INTO meta (name, value) VALUES ('last_seq', ?1) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)
