"""How long work tells its caller how far it has come."""

from collections.abc import Callable
from typing import TypeAlias

ProgressCallback: TypeAlias = Callable[[str, float], None]
"""Called with what is being done and the share of it done, in [0, 1]."""


def silent(message: str, share: float) -> None:
    """Tell nobody."""
