-- The usual change: `alive` stays as it is, and so does its index.
UPDATE runs SET state = ?2, body = ?3 WHERE seq = ?1
