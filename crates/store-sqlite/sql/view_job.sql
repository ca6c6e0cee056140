SELECT j.seq, j.created, j.lane, j.tier, j.entry, j.key, j.previous, p.created AS previous_created, j.payload,
       s.body AS spec_body, t.name AS tenant_name, n.line,
       e.state AS ended_state, e.at AS ended_at, e.attempt AS ended_attempt, e.failures AS ended_failures,
       e.crashes AS ended_crashes, e.output, el.keys AS ended_keys, d.reason AS dead_reason,
       h.attempt AS lease_attempt, h.failures AS lease_failures, h.crashes AS lease_crashes,
       h.checkpoint AS lease_checkpoint, h.worker, h.expires, hl.keys AS lease_keys
FROM jobs j
JOIN specs s ON s.id = j.spec
JOIN tenants t ON t.id = j.tenant
JOIN lanes n ON n.id = j.lane
LEFT JOIN jobs p ON p.seq = j.previous
LEFT JOIN ended e ON e.task = j.seq << 20
LEFT JOIN lanes el ON el.id = e.lane
LEFT JOIN dead d ON d.task = j.seq << 20
LEFT JOIN leases h ON h.task = j.seq << 20
LEFT JOIN lanes hl ON hl.id = h.lane
WHERE j.seq = ?1
