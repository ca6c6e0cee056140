INSERT INTO journal (at, events) VALUES (?1, ?2)
