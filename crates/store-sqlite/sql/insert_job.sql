INSERT INTO jobs (seq, created, spec, lane, tier, tenant, entry, key, bucket, previous, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
