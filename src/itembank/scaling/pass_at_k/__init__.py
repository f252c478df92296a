"""Repeated samples: pass@k from few of them, and which to buy next."""
