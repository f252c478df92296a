"""Banks for others: pushed to the Hugging Face Hub, pulled from it, published with a small subset, built by recipes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
