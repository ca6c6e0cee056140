SELECT message FROM attempts WHERE task = ?1 AND how <> 'stale' ORDER BY n DESC LIMIT 1
