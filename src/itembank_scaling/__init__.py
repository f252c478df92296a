"""Scaling laws: how scores grow with training compute, and with more samples of each item."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
