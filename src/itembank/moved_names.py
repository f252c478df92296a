"""Where public names of earlier versions are now."""

import importlib
from collections.abc import Sequence

from itembank.errors import did_you_mean

NAMESPACES = (
    "calibrations",
    "selectors",
    "estimators",
    "criteria",
    "banks",
    "scaling",
    "studies",
    "diagnostics",
    "simulation",
    "harnesses",
    "publishing",
    "pages",
)
RENAMED = {
    "SessionSettings": "SessionSpec",
    "session_settings": "SessionSpec",
}


def advice_on(name: str, public: Sequence[str]) -> str:
    """Say where a name that `itembank` does not have is now, or which it may have been meant to be."""
    if name in RENAMED:
        return f" It is itembank.{RENAMED[name]} now."
    if name.startswith("_"):
        return ""
    for namespace in NAMESPACES:
        if name in importlib.import_module(f"itembank.{namespace}").__all__:
            return f" It is itembank.{namespace}.{name} now."
    return did_you_mean(name, public)
