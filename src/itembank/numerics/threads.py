"""Threads of matrix products, and numbers of processes."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

from itembank.errors import ParameterError

_inside = threading.local()


def check_jobs(n_jobs: int | None) -> None:
    """Raise `ParameterError` unless a number of processes is -1, one a core, or at least 1, where it is given."""
    if n_jobs is not None and (n_jobs == 0 or n_jobs < -1):
        raise ParameterError(f"n_jobs must be -1 (one process a core) or at least 1, got {n_jobs}.")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread; as a context or as a decorator.

    Our products are many and narrow: more threads hardly help them, and on a busy machine they spend ten times the
    work waiting for each other (measured with OpenBLAS: 39 CPU-s instead of 0.9 on two cores shared with others).
    """
    # One context within another changes nothing, and asking every library takes as long as a small fit.
    if getattr(_inside, "is_limited", False):
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        _inside.is_limited = True
        try:
            yield
        finally:
            _inside.is_limited = False


@functools.cache
def _controller() -> ThreadpoolController:
    """Find the loaded BLAS libraries, once: looking takes milliseconds."""
    import scipy.special  # noqa: F401, PLC0415 (brings scipy's BLAS, which must be loaded to be found; linalg is slow)

    return ThreadpoolController()
