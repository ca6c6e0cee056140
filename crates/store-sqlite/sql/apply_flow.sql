UPDATE flows SET applied = (SELECT ifnull(max(applied), 0) + 1 FROM flows) WHERE id = ?1
