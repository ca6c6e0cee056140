-- The first task of each parked (lane, tier), by seeks: as many as there are lanes, not tasks.
-- A seek by a row of values stops at the first row that is equal to it, so the highest stamp is part of it: without
-- it every task of the lane would be stepped over. The plus keeps the types of `heads` out of the comparison; with
-- them only the first column would be sought.
WITH RECURSIVE heads (lane, tier) AS (
    SELECT * FROM (SELECT lane, tier FROM parked ORDER BY lane, tier LIMIT 1)
    UNION ALL
    SELECT (SELECT p.lane FROM parked p WHERE (p.lane, p.tier, p.stamp) > (+h.lane, +h.tier, 9223372036854775807)
            ORDER BY p.lane, p.tier LIMIT 1),
           (SELECT p.tier FROM parked p WHERE (p.lane, p.tier, p.stamp) > (+h.lane, +h.tier, 9223372036854775807)
            ORDER BY p.lane, p.tier LIMIT 1)
    FROM heads h WHERE h.lane IS NOT NULL
)
SELECT h.lane, h.tier, p.stamp, p.task, p.since
FROM heads h CROSS JOIN parked p
WHERE h.lane IS NOT NULL AND p.lane = h.lane AND p.tier = h.tier
  AND (p.stamp, p.task) = (SELECT f.stamp, f.task FROM parked f WHERE f.lane = h.lane AND f.tier = h.tier
                           ORDER BY f.stamp, f.task LIMIT 1)
