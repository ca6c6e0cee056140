SELECT lane, state, count(*) FROM ended WHERE task >= ?1 AND task < ?2 GROUP BY lane, state
