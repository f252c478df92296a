"""Calibrated item banks for evaluating language models.

Here are the verbs, and what they take and give; methods and tools are in `calibrations`, `selectors`, `estimators`,
`criteria`, `banks`, `scaling`, `studies`, `diagnostics`, `simulation`, `harnesses`, `publishing`, `pages` and `plots`.
Names load on first use, so that ``import itembank`` stays light. `__init__.pyi` lists them, here and in the packages
below.
"""

from typing import Any

import lazy_loader

from itembank import page_pieces as _page_pieces


def _pieces_of(result: object) -> str | None:
    """Return the beginning of a result's page: results lie below pages, so that the way there begins here."""
    from itembank.pages.shown import pieces_of  # noqa: PLC0415 (heavy)

    return pieces_of(result)


_page_pieces.pieces_of = _pieces_of
_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import the module that holds a public name."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 (reading it takes as long as the rest of this import)

        return version("itembank")
    try:
        return _attribute(name)
    except AttributeError:
        from itembank.errors import did_you_mean  # noqa: PLC0415 (only a name that is not here needs it)

        raise AttributeError(f"itembank has no {name!r}.{did_you_mean(name, __all__)}") from None
