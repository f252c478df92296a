"""What results take from modules above them: `itembank` itself, which may name all, puts it here."""

from collections.abc import Callable
from typing import Any


def _absent(*_arguments: Any, **_named: Any) -> None:
    """Stand for what `itembank` has not put here yet."""


pieces_of: Callable[[object], str | None] = _absent
"""Returns the beginning of a result's page as HTML, or None for a result that has no page."""
chart_of: Callable[[object], Any] = _absent
"""Returns the first chart of a result's page."""
save_bank: Callable[..., None] = _absent
"""Writes a bank's folder."""
