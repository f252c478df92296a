"""Which releases of Inspect the harness can run in."""

import re
from importlib.metadata import version

from itembank.errors import MissingDependencyError, missing_package

OLDEST = (0, 3, 250)
"""The first release whose tasks can be fed samples while they run."""


def check_release() -> None:
    """Raise `MissingDependencyError` unless an Inspect is installed that the harness can run in."""
    try:
        import inspect_ai  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise missing_package("runs inside Inspect need inspect_ai", "inspect_ai", error) from error
    installed = version("inspect_ai")
    if tuple(int(part) for part in re.findall(r"\d+", installed)[:3]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MissingDependencyError(
            f"runs inside Inspect need inspect_ai {oldest} or newer, got {installed}: pip install -U inspect_ai. Logs "
            "of any release can be read: itembank import."
        )
