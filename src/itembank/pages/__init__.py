"""Reports: pages of one HTML file each, which open anywhere and need nothing else.

`itembank.show` gives the page of any result. The functions here make pages with what it cannot know: the bank and the
answers that a result came from, which target, law or models to show. ``page.save("report.html")`` writes a page, and a
notebook shows it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
