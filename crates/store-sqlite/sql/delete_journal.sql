DELETE FROM journal WHERE n <= ?1
