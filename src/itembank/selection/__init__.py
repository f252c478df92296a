"""Which items to run."""
