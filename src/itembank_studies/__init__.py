"""Comparison of selections and estimates on models that the bank has not seen."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
