"""Item parameters from responses."""
