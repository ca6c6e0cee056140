SELECT j.created, d.name, d.media_type, d.content FROM documents d JOIN jobs j ON j.seq = d.seq WHERE d.seq = ?1
