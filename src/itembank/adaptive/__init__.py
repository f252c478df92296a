"""Adaptive testing: which items to ask one model next, and when to stop."""
