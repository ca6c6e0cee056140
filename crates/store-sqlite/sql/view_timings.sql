SELECT task, total / n FROM timings WHERE flow = ?1
