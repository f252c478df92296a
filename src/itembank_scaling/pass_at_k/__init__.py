"""pass@k from few samples of every item, and which samples to draw next."""
