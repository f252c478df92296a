"""Joint maximum a posteriori of items and abilities."""
