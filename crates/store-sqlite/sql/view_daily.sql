SELECT day, what, n FROM daily ORDER BY day DESC
