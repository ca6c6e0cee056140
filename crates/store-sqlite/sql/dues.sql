-- The soonest few, to find the first of a line that is asked for.
SELECT due, lane FROM delayed ORDER BY due, task LIMIT 64
