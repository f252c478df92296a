"""How well few responses to some tasks predict scores on these and on other tasks (P2 section 6)."""
