"""IRSL's simulation (its 4.1): how well difficulties are found again from probabilities, single answers and counts."""
