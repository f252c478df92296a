"""Other tools beside itembank on the same simulated responses: ``python -m benchmarks.rivals``."""
