"""Public stores of past results: download what is pinned, and read it."""
