"""Lists in messages."""

from collections.abc import Sequence

from itembank.errors import N_SHOWN


def first_few(parts: Sequence[str], total: int | None = None) -> str:
    """Join the first few parts, and say how many more there are (`total` counts all when `parts` is cut already)."""
    more = (len(parts) if total is None else total) - N_SHOWN
    return ", ".join(parts[:N_SHOWN]) + (f" and {more} more" if more > 0 else "")
