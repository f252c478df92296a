"""Reports: pages of one HTML file each, which open anywhere and need nothing else.

Every function takes a result and returns a `Page`: ``page.save("report.html")`` writes it, and a notebook shows it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
