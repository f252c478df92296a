"""Banks that live: items retired and restored, banks compared, every change in a history."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("itembank", __file__)
