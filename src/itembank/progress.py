"""How long work tells its caller how far it has come."""

from collections.abc import Callable
from typing import TypeAlias

ProgressCallback: TypeAlias = Callable[[str, float], None]
"""Called with what is being done and the share of it done, in [0, 1]."""


def silent(message: str, share: float) -> None:
    """Tell nobody."""


def part_of(progress: ProgressCallback, low: float, high: float, label: str = "") -> ProgressCallback:
    """Return what a part of the work tells its progress to: from share `low` to `high` of the whole, after a label."""

    def tell(message: str, share: float) -> None:
        progress(f"{label}{message}", low + (high - low) * share)

    return tell
