SELECT waiter FROM waits WHERE job = ?1 ORDER BY waiter
