"""How well pass@k is known from a small sampling budget, on real repeated samples."""
