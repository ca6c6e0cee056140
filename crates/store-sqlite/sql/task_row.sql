SELECT lane, tier, entry, payload FROM tasks WHERE task = ?1
