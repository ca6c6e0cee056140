-- Changes when another connection has committed: then the cache is stale.
PRAGMA data_version
