"""Does it compute the same? Dumps of training runs: read, aligned, compared, judged."""
