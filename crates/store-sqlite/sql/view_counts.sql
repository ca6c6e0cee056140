-- Live work only; what ended is counted in tally. Jobs are numbered in order of their arrival, so
-- the lowest task is the oldest.
SELECT r.line, 'ready', r.n, j.created
FROM (SELECT line, count(*) AS n, min(task) >> 20 AS oldest FROM ready GROUP BY line) r
JOIN jobs j ON j.seq = r.oldest
UNION ALL
SELECT l.line, 'parked', sum(p.n), min(j.created)
FROM (SELECT lane, count(*) AS n, min(task) >> 20 AS oldest FROM parked GROUP BY lane) p
JOIN jobs j ON j.seq = p.oldest
JOIN lanes l ON l.id = p.lane
GROUP BY l.line
UNION ALL
SELECT l.line, iif(d.failures > 0, 'retrying', 'scheduled'), count(*), NULL
FROM delayed d JOIN lanes l ON l.id = d.lane GROUP BY l.line, d.failures > 0
UNION ALL
SELECT l.line, 'running', count(*), min(h.started) FROM leases h JOIN lanes l ON l.id = h.lane GROUP BY l.line
UNION ALL
SELECT line, 'dead', count(*), min(at) FROM dead GROUP BY line
UNION ALL
SELECT l.line, 'paused', count(*), NULL FROM held h JOIN lanes l ON l.id = h.lane GROUP BY l.line
