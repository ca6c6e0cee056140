SELECT queue, since FROM paused ORDER BY queue
