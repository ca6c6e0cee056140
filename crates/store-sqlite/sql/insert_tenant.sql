INSERT INTO tenants (id, name) VALUES (?1, ?2)
