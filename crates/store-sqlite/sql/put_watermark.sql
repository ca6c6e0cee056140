INSERT OR REPLACE INTO meta (name, value) VALUES ('idem_watermark', ?1)
