SELECT created FROM jobs WHERE seq >= ?1 ORDER BY seq LIMIT 1
