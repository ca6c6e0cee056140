SELECT created, spec, lane, tier, tenant, entry, key, bucket, payload, flow FROM jobs WHERE seq = ?1
