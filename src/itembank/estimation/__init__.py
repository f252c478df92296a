"""Full-benchmark scores from some responses."""
