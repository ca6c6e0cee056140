SELECT created, spec, lane, tier, tenant, entry, key, bucket, previous, payload FROM jobs WHERE seq = ?1
