"""Formats and programs of others: readers of harnesses and leaderboards, public stores, runs inside harnesses."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
