SELECT seq, tenant, spec, key, bucket FROM jobs WHERE seq > ?1 AND key IS NOT NULL ORDER BY seq
