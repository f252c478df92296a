"""Scaling laws: what training compute makes of a score, and what more samples of each item buy."""
