"""Numerical tools on plain arrays; nothing here knows of models, items or files."""
