"""Banks that live: models and items added, linked, retired; built by recipes, published, pushed to the Hub."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
