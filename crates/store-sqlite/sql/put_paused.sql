INSERT INTO paused (queue, since) VALUES (?1, ?2) ON CONFLICT (queue) DO NOTHING
