-- The first task of each parked (lane, tier), by seeks: as many as there are lanes, not tasks.
WITH RECURSIVE heads (lane, tier) AS (
    SELECT * FROM (SELECT lane, tier FROM parked ORDER BY lane, tier LIMIT 1)
    UNION ALL
    SELECT (SELECT p.lane FROM parked p WHERE (p.lane, p.tier) > (h.lane, h.tier) ORDER BY p.lane, p.tier LIMIT 1),
           (SELECT p.tier FROM parked p WHERE (p.lane, p.tier) > (h.lane, h.tier) ORDER BY p.lane, p.tier LIMIT 1)
    FROM heads h WHERE h.lane IS NOT NULL
)
SELECT h.lane, h.tier, p.stamp, p.task, p.since
FROM heads h CROSS JOIN parked p
WHERE h.lane IS NOT NULL AND p.lane = h.lane AND p.tier = h.tier
  AND (p.stamp, p.task) = (SELECT f.stamp, f.task FROM parked f WHERE f.lane = h.lane AND f.tier = h.tier
                           ORDER BY f.stamp, f.task LIMIT 1)
