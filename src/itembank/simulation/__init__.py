"""Made-up responses with known truth."""
