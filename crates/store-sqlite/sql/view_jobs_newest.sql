SELECT j.seq, j.created, j.lane, j.tier, j.entry, j.key, j.previous, p.created AS previous_created, j.payload, j.flow, j.meta,
       d.name AS document_name, d.media_type, d.size AS document_size, d.sha256,
       s.body AS spec_body, t.name AS tenant_name, n.line,
       r.state AS run_state, r.body AS run_body, r.output AS run_output,
       e.state AS ended_state, h.attempt AS lease_attempt
FROM jobs j
JOIN tenants t ON t.id = j.tenant
LEFT JOIN specs s ON s.id = j.spec
LEFT JOIN lanes n ON n.id = j.lane
LEFT JOIN jobs p ON p.seq = j.previous
LEFT JOIN documents d ON d.seq = j.seq
LEFT JOIN runs r ON r.seq = j.seq
LEFT JOIN ended e ON e.task = j.seq << 20
LEFT JOIN leases h ON h.task = j.seq << 20
WHERE j.seq < ?1
ORDER BY j.seq DESC
