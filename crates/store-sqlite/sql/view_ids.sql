SELECT seq, created FROM jobs ORDER BY seq DESC
