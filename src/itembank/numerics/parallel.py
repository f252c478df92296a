"""Work in parts that do not depend on each other: in this process, or wherever joblib's configuration says."""

import functools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from itembank.errors import ItembankWarning, ParameterError, warn
from itembank.progress import ProgressCallback, silent

Result = TypeVar("Result")

MOST_RESTARTS = 3
"""Deaths of worker processes after each of which the parts that were lost are run again."""
DEATHS = {"TerminatedWorkerError", "RayActorError", "WorkerCrashedError"}
"""What joblib's own processes and Ray raise when a worker died; Dask starts its tasks again by itself."""
_here = threading.local()


def in_parallel(
    function: Callable[..., Result], parts: Sequence[tuple[Any, ...]], *, n_jobs: int | None = None
) -> Iterator[tuple[int, Result]]:
    """Call a function with the arguments of each part; yield the part's number and its result whenever one is done.

    The parts run one after another in this process, unless `n_jobs` or the surrounding ``joblib.parallel_config`` asks
    for more. They then run in processes of this machine, or on the backend that this configuration names, such as
    ``"dask"`` or ``"ray"``. Wherever they run, BLAS has one thread, so that results are the same, and warnings reach
    the caller. When a worker process dies, the parts it had are run again.

    Arguments must be such as can be sent to other processes; large arrays reach these as memory maps. `n_jobs` is -1
    for one process a core; None takes what the configuration says, which is 1 without one.

    Raises `ParameterError` for a number of processes that cannot be, or a backend of threads.
    """
    check_jobs(n_jobs)
    if runs_here(len(parts), n_jobs):
        for number, part in enumerate(parts):
            with one_blas_thread():
                result = function(*part)
            yield number, result
        return
    yield from _in_workers(function, dict(enumerate(parts)), n_jobs)


def parts_with_progress(
    function: Callable[..., Result],
    parts: Sequence[tuple[Any, ...]],  # As for `in_parallel`, without the last argument
    progress: ProgressCallback,
    label: str = "",  # Said in place of what the parts say, with the number of the part
    *,
    elsewhere: str = "",  # Said of parts that run elsewhere, where it differs
) -> Iterator[tuple[int, Result]]:
    """Run parts as `in_parallel` does, by a function whose last argument is told how far a part is.

    In this process every part reports its own progress; of parts that run elsewhere, how many are done.
    """
    n_parts, is_here = len(parts), runs_here(len(parts))

    def own_progress(number: int) -> ProgressCallback:
        text = f"{label} {number + 1} of {n_parts}" if label else ""
        return lambda message, share: progress(text or message, (number + share) / n_parts)

    told = [(*part, own_progress(number) if is_here else silent) for number, part in enumerate(parts)]
    for n_done, found in enumerate(in_parallel(function, told), start=1):
        if not is_here:
            progress(f"{elsewhere or label}, {n_done} of {n_parts} done", n_done / n_parts)
        yield found


def runs_here(n_parts: int, n_jobs: int | None = None) -> bool:
    """Whether so many parts run one after another in this process."""
    return n_parts < 2 or _n_workers(n_jobs) == 1


@contextmanager
def jobs(n_jobs: int) -> Iterator[None]:
    """Let what runs inside use so many processes; -1 for one a core."""
    check_jobs(n_jobs)
    if n_jobs == 1:
        yield
        return
    import joblib  # noqa: PLC0415 (only work that runs in parallel needs it)

    with joblib.parallel_config(n_jobs=n_jobs):
        yield


def _n_workers(n_jobs: int | None) -> int:
    """Return how many workers there are to be; joblib is not loaded where nobody can have configured it."""
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules) or getattr(_here, "is_worker", False):
        return 1
    from joblib.parallel import get_active_backend  # noqa: PLC0415 (only work that runs in parallel needs it)

    backend, configured = get_active_backend()
    asked = configured if n_jobs is None else n_jobs
    n_workers = int(backend.effective_n_jobs(backend.default_n_jobs if asked is None else asked))
    if n_workers > 1 and getattr(backend, "supports_sharedmem", False):
        raise ParameterError(
            f"work in parallel needs a joblib backend of processes, got {type(backend).__name__}, which is one of "
            "threads: these would share settings of BLAS and of warnings. Leave the backend out, or take 'dask' or "
            "'ray'."
        )
    return n_workers


def _in_workers(
    function: Callable[..., Result], left: dict[int, tuple[Any, ...]], n_jobs: int | None
) -> Iterator[tuple[int, Result]]:
    """Run parts in workers; those whose worker died are run again."""
    for attempt in range(MOST_RESTARTS + 1):
        try:
            for number, result, said in _handed_out(function, left, n_jobs):
                del left[number]
                for message, category in said:
                    if issubclass(category, ItembankWarning):
                        warn(message, category)
                    else:
                        warnings.warn(message, category, stacklevel=2)
                yield number, result
            return
        except Exception as error:
            if attempt == MOST_RESTARTS or not DEATHS & {one.__name__ for one in type(error).__mro__}:
                raise


def _handed_out(
    function: Callable[..., Result], left: Mapping[int, tuple[Any, ...]], n_jobs: int | None
) -> Iterator[tuple[int, Result, list[tuple[str, type[Warning]]]]]:
    """Give parts to joblib; results come in any order."""
    import joblib  # noqa: PLC0415
    from joblib.parallel import get_active_backend  # noqa: PLC0415

    calls = [joblib.delayed(_in_worker)(function, number, part) for number, part in left.items()]
    is_ours = type(get_active_backend()[0]).__name__ == "LokyBackend"
    # Parts handed out at a time by a backend that gives results back only when all are there.
    parts_per_worker = 4
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1) if is_ours else joblib.parallel_config():
        try:
            work = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
            chunks = [calls]
        except ValueError:  # this backend has no generators (Ray's)
            work = joblib.Parallel(n_jobs=n_jobs, batch_size=1)
            size = parts_per_worker * _n_workers(n_jobs)
            chunks = [calls[start : start + size] for start in range(0, len(calls), size)]
    for chunk in chunks:
        yield from work(chunk)


def _in_worker(
    function: Callable[..., Result], number: int, part: tuple[Any, ...]
) -> tuple[int, Result, list[tuple[str, type[Warning]]]]:
    """Run one part where it was sent; return its number, its result and what it warned of."""
    _here.is_worker = True  # parts of this part run here
    try:
        with warnings.catch_warnings(record=True) as caught, one_blas_thread():
            warnings.simplefilter("always")
            result = function(*part)
    finally:
        _here.is_worker = False
    return number, result, list(dict.fromkeys((str(one.message), one.category) for one in caught))


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
    _keep_freed_memory()
    is_scipys_here = _is_scipys_blas_loaded()
    blas = _controller(has_scipys=is_scipys_here)
    with (
        nullcontext() if is_scipys_here else _scipys_blas_loads_with_one_thread(),
        blas.limit(limits=1, user_api="blas"),
    ):
        _inside.is_limited = True
        try:
            yield
        finally:
            _inside.is_limited = False


@contextmanager
def _scipys_blas_loads_with_one_thread() -> Iterator[None]:
    """Limit scipy's BLAS where it is loaded within; short commands never load it, which would take half of their time.

    OpenBLAS asks the environment when it is loaded. Afterwards it may use as many threads as numpy's.
    """
    name = "OPENBLAS_NUM_THREADS"
    before, numpys = os.environ.get(name), _controller(has_scipys=False).select(user_api="blas").info()
    os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
        if numpys and _is_scipys_blas_loaded():
            threadpool_limits(numpys[0]["num_threads"], user_api="blas")


def _is_scipys_blas_loaded() -> bool:
    return not sys.modules.keys().isdisjoint({"scipy.linalg", "scipy.special"})


@functools.cache
def _keep_freed_memory() -> None:
    """Let the C library keep what arrays free, for the next ones.

    Else it hands the memory of a block's temporaries back to the system after every block of responses, and gets it
    anew page by page: up to a fifth of the time of a fit. glibc keeps arrays as large as any that it freed before
    (M_MMAP_THRESHOLD in mallopt(3), up to 32 MB), so one that nothing is written to is made and freed.
    """
    # Bytes of an array whose memory the C library keeps when it is freed.
    largest_kept = 31 * 2**20
    np.empty(largest_kept, dtype=np.uint8)


@functools.cache
def _controller(*, has_scipys: bool) -> ThreadpoolController:  # noqa: ARG001 (scipy has a BLAS of its own)
    """Find the loaded BLAS libraries, once without and once with scipy's: looking takes milliseconds."""
    return ThreadpoolController()
