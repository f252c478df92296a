"""Timings and accuracy on real data; not part of the package."""
