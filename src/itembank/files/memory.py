"""Looking before allocating: how much memory reading may take, and what is refused because it would take more."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from itembank.errors import DataError

GIBIBYTE = 2**30
ALWAYS_ALLOWED = 256 * 2**20
"""Bytes that a compressed file may grow to however small it is."""

HOW_TO_ALLOW = (
    "To go on anyway, allow more memory (max_memory=8e9, or that line in the file of itembank import --spec)."
)

_allowed: ContextVar[float | None] = ContextVar("allowed", default=None)


@contextmanager
def allowing(max_memory: float | None) -> Iterator[None]:
    """Let reading in this block take so many bytes; None: as much as suits the machine."""
    token = _allowed.set(max_memory)
    try:
        yield
    finally:
        _allowed.reset(token)


def allowed_memory() -> float | None:
    """Return what `allowing` said, to say it again in another process."""
    return _allowed.get()


def most_memory() -> float:
    """Return the bytes that reading may take: half of the machine's, as what is made of a matrix takes as much."""
    allowed = _allowed.get()
    return 0.5 * _machine_memory() if allowed is None else allowed


def check_matrix_fits(source: str, n_models: int, n_items: int, n_responses: int, n_arrays: int) -> None:
    """Raise `DataError` when arrays (n_models, n_items), of float64, would not fit, or hold next to nothing."""
    n_bytes = 8.0 * n_models * n_items * n_arrays
    density = n_responses / (n_models * n_items)
    # so few answered cells are taken for ids that are none, where they ask for much memory
    is_suspect = _allowed.get() is None and density < 1e-3 and n_bytes > GIBIBYTE
    if n_bytes <= most_memory() and not is_suspect:
        return
    raise DataError(
        f"{source}: {n_models:,} models x {n_items:,} items with {n_responses:,} responses: density "
        f"{100.0 * density:.2g} %; this asks for {n_bytes / GIBIBYTE:,.3g} GiB of memory, of which "
        f"{most_memory() / GIBIBYTE:,.3g} may be taken. Do the ids hold a time stamp or a row number? Check which "
        f"columns are model_id and item_id (--column). {HOW_TO_ALLOW}"
    )


def most_text(n_compressed: int) -> float:
    """Return the bytes of text that a compressed file may give, from its size."""
    most = most_memory() / 4  # a text takes four times its own size while it is made into a table
    if _allowed.get() is not None:
        return most
    return min(most, max(250 * n_compressed, ALWAYS_ALLOWED))  # answers of right and wrong grow 10 to 100 times


def most_in_object() -> float:
    """Return the bytes that one line, or one JSON document, may have: an object takes 16 times its size."""
    return most_memory() / 16


def refuse_text(path: Path, most: float) -> DataError:
    """Make the error of a file that gives more text than it may."""
    return DataError(
        f"{path}: unpacked, the file grows beyond {most / GIBIBYTE:,.3g} GiB, more than its size or this machine's "
        f"memory allow. Is it what you expect? {HOW_TO_ALLOW}"
    )


def refuse_object(path: Path, most: float) -> DataError:
    """Make the error of a file that has one line, or one JSON document, larger than it may be."""
    return DataError(
        f"{path}: a line, or a JSON document, must have at most {most / GIBIBYTE:,.3g} GiB, got more. Is it what you "
        f"expect? {HOW_TO_ALLOW}"
    )


def _machine_memory() -> float:
    """Memory that this process can have: the machine's, or less where its group or its own limit is lower."""
    found = [float(4 * GIBIBYTE)]
    with suppress(AttributeError, ValueError, OSError):
        found = [float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError):
        found.append(float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    with suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 (absent on Windows)

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(float(limit))
    return min(found)
