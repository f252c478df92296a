"""The linear-Gaussian factor model of raw responses."""
