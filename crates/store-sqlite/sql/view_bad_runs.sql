SELECT seq FROM runs WHERE state IN (6, 7) ORDER BY seq
