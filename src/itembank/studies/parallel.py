"""Work in parts, in one process or several, telling how long the rest will take."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from itembank.progress import ProgressCallback


def run_parts(
    work: Callable[..., None],
    arguments: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int,
    progress: ProgressCallback,
    n_done: int,
    word: str,
) -> None:
    """Call `work` with each of the arguments, and tell how far it is.

    Parameters
    ----------
    work : function
        Of the module's top level, so that other processes find it. Large arrays reach them as memory maps.
    arguments : list of tuples
    n_jobs : int
        Processes, each with one BLAS thread; -1 for one a core.
    progress : ProgressCallback
    n_done : int
        Parts that were done before.
    word : str
        What parts are called.
    """
    n_parts, started = n_done + len(arguments), time.monotonic()
    progress(f"{n_done} of {n_parts} {word}", n_done / n_parts)
    for count, _ in enumerate(_each(work, arguments, n_jobs), start=1):
        seconds = (time.monotonic() - started) / count * (len(arguments) - count)
        progress(f"{n_done + count} of {n_parts} {word}, {_duration(seconds)} left", (n_done + count) / n_parts)


def _each(work: Callable[..., None], arguments: Sequence[tuple[Any, ...]], n_jobs: int) -> Iterator[None]:
    """Run parts in this process or in several; yield whenever one is done."""
    if n_jobs == 1 or len(arguments) < 2:
        for one in arguments:
            work(*one)
            yield
        return
    import joblib  # noqa: PLC0415 (only studies that run in parallel need it)

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(work)(*one) for one in arguments)


def _duration(seconds: float) -> str:
    """Say a time in the unit a person would."""
    if seconds < 90.0:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60.0:.0f} min" if seconds < 5400.0 else f"about {seconds / 3600.0:.1f} h"
