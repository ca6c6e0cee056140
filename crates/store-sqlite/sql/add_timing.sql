INSERT INTO timings (flow, task, n, total) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (flow, task) DO UPDATE SET n = n + ?3, total = total + ?4
