"""What the responses say about the benchmark itself."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("itembank", __file__)
