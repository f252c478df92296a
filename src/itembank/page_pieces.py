"""What makes the beginning of a result's page for a notebook: `itembank` itself, which may name pages, puts it here."""

from collections.abc import Callable


def no_pieces(result: object) -> str | None:
    """Show no more of a result than its table."""


pieces_of: Callable[[object], str | None] = no_pieces
"""Returns HTML, or None for a result that has no page."""
