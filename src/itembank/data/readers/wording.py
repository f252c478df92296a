"""Lists in messages."""

from collections.abc import Sequence

from itembank.errors import N_SHOWN


def first_few(parts: Sequence[str], total: int | None = None) -> str:
    """Join the first few parts, with dots when there are more (`total` counts them when `parts` is cut already)."""
    more = ", ..." if (len(parts) if total is None else total) > N_SHOWN else ""
    return ", ".join(parts[:N_SHOWN]) + more
