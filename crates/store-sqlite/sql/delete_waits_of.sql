DELETE FROM waits WHERE waiter = ?1
