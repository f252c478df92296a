"""Calibrated item banks for evaluating language models.

Here are the verbs, and what they take and give; methods and tools are in `calibrations`, `selectors`, `estimators`,
`criteria`, `banks`, `scaling`, `studies`, `diagnostics`, `simulation`, `harnesses`, `publishing`, `pages` and `plots`.
Names load on first use, so that ``import itembank`` stays light. `__init__.pyi` lists them, here and in the packages
below.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import lazy_loader

from itembank import above as _above


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that is loaded when it is called first."""

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(f"itembank.{module}"), name)(*arguments, **named)

    return call


_above.pieces_of, _above.chart_of = (_later("pages.shown", name) for name in ("pieces_of", "chart_of"))
_above.save_bank = _later("bank.bank_files", "save_bank")
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
