SELECT name, note, first_seen, last_seen FROM workers WHERE last_seen > ?1 ORDER BY name
