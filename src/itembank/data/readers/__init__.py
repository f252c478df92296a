"""Readers of per-item results, one file a source."""
