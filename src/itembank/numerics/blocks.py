"""How much is worked on at once: one size of a block for every loop over rows of an array."""

from collections.abc import Iterator

CELLS_AT_ONCE = 1 << 20
"""Cells of an array worked on at once: 8 MB of float64."""


def row_blocks(n_rows: int, n_columns: int, *, times: float = 1.0) -> Iterator[slice]:
    """Cut rows into runs of about ``times * CELLS_AT_ONCE`` cells, one row at least."""
    size = max(1, int(times * CELLS_AT_ONCE) // max(1, n_columns))
    return (slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size))
