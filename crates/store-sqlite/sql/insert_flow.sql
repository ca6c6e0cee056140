INSERT INTO flows (implicit, name, hash, version, created, body)
VALUES (?1, ?2, ?3, (SELECT ifnull(max(version), 0) + 1 FROM flows WHERE implicit = ?1 AND name = ?2), ?4, ?5)
