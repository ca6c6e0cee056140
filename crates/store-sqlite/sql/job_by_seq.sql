SELECT created, spec, lane, tier, tenant, entry, key, bucket, payload, flow, meta FROM jobs WHERE seq = ?1
