"""How well few responses to some tasks predict scores on these and on other tasks (WILD section 6)."""
