"""What papers show of a benchmark itself, drawn again on any responses."""
