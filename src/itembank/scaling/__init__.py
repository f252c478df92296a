"""Scaling laws: what training compute makes of a score, and what more samples of each item buy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
