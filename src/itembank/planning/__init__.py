"""How to spend a budget of items: which method, and how many."""
