"""Calibrated item banks for evaluating language models.

Here are the verbs, and what they take and give; methods and tools are in `calibrations`, `selectors`, `estimators`,
`criteria`, `banks`, `diagnostics`, `harnesses`, `pages` and `plots`.
Names load on first use, so that ``import itembank`` stays light. `__init__.pyi` lists them, here and in the packages
below.
"""

from collections.abc import Callable
from contextlib import suppress
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
        raise AttributeError(f"itembank has no {name!r}.{_advice(name)}") from None


_INSTEAD = {
    **dict.fromkeys(
        ("read", "read_csv", "read_logs", "load_responses", "import_", "import_results", "import_logs", "from_csv"),
        "ib.read_responses(results), of paths or a table",
    ),
    **dict.fromkeys(("build_bank", "fit", "calibrate_bank", "make_bank"), "ib.calibrate(responses)"),
    **dict.fromkeys(("score", "evaluate", "predict"), "ib.estimate(bank, responses)"),
    **dict.fromkeys(("load", "open"), "ib.load_bank(path)"),
    **dict.fromkeys(("save", "save_bank"), "bank.save(path)"),
    **dict.fromkeys(("from_pandas", "from_polars", "from_frame"), "ib.read_responses(table)"),
    "audit": "ib.check(bank)",
    "sample": "ib.select(bank, n)",
    "plot": "result.plot()",
    **dict.fromkeys(("session", "Session"), "with ib.start_session(path, bank) as session"),
    **dict.fromkeys(("load_selection", "read_selection"), "ib.Selection.load(path)"),
    **dict.fromkeys(
        ("list_banks", "ready_banks", "download"),
        "ib.load_bank('bank:NAME'); itembank bank list, in a shell, names them",
    ),
    "sample_data": "ib.load_builtin(name)",
    **dict.fromkeys(("Error", "exceptions", "InputError"), "ib.errors.ItembankError, the root of all errors"),
    "run": "the command itembank run in a shell, or ib.harnesses.drive(session, function)",
}
"""What to write for names that people try first."""


def _advice(name: str) -> str:
    """Say what is to be written for a name that is not here."""
    from itembank import errors  # noqa: PLC0415 (only a name that is not here needs it)

    if name in _INSTEAD:
        return f" Write {_INSTEAD[name]}."
    spaces = {} if name.startswith("_") else {one: getattr(_attribute(one), "__all__", ()) for one in _SPACES}
    spaces["errors"] = [one for one in vars(errors) if one.endswith(("Error", "Warning"))]
    place = next((f"ib.{space}" for space, names in spaces.items() if name in names), "")
    if not place:  # in a package that brings commands
        from importlib.metadata import entry_points  # noqa: PLC0415 (slow to import)

        for wing in {entry.module.partition(".")[0] for entry in entry_points(group="itembank.commands")}:
            with suppress(Exception):  # of a stranger's package
                place = wing if name in getattr(import_module(wing), "__all__", ()) else place
    return f" Write {place}.{name}." if place else errors.did_you_mean(name, __all__)


_SPACES = ("banks", "calibrations", "criteria", "diagnostics", "estimators", "plots", "selectors")
"""Packages in which a name is looked for that is not here."""
