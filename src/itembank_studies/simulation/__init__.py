"""Responses made up from known parameters."""
