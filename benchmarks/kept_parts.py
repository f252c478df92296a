"""Parts of long benchmarks, each kept when it is done, so that a run that is stopped goes on where it was.

A part is a table under its name in a folder that is named after the code that the part could run, the data and the
versions of numerical libraries: numbers of other code are never mixed in. Folders stand in benchmarks/results/kept, or
in the folder that ``ITEMBANK_KEPT`` names. Nothing takes the old ones away.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import polars as pl

from benchmarks.code_used import files_used
from benchmarks.result_manifests import LIBRARIES, ROOT, code_digest, data_digest, digest
from itembank.numerics.parallel import one_blas_thread
from itembank_studies.engine import is_whole, read_tables, write_table

NO_NUMBERS = {"cli", "pages", "readers", "figure.py", "errors.py", "progress.py", "__init__.py", "__main__.py"}
"""Files and folders in which no number of a table comes about."""

Make = Callable[[], pl.DataFrame]


def kept_folder(name: str, code: Sequence[Path], *, data: Sequence[str] = (), settings: Sequence[Path] = ()) -> Path:
    """Return where the parts of a benchmark are kept.

    Parameters
    ----------
    name : str
        Of the benchmark.
    code : sequence of paths
        Python files or folders of the benchmark; what they import counts, too.
    data : sequence of str
        Folders of $ITEMBANK_SHARED/data.
    settings : sequence of paths
        Other files that decide on the numbers.
    """
    files = [path for path in files_used(*code) if not set(path.relative_to(ROOT).parts) & NO_NUMBERS]
    what = {
        "code": code_digest(files),
        "data": {one: data_digest(one) for one in data},
        "settings": [digest(path.read_bytes()) for path in settings],
        "versions": {library: version(library) for library in LIBRARIES},
    }
    place = Path(os.environ.get("ITEMBANK_KEPT", ROOT / "benchmarks" / "results" / "kept"))
    return place / name / digest(json.dumps(what).encode())[:12]


def run_parts(folder: Path, parts: Mapping[str, Make], *, jobs: int = 1, only_kept: bool = False) -> list[pl.DataFrame]:
    """Make the parts that are not kept yet, and return all, in their order.

    Parameters
    ----------
    folder : path
        Of `kept_folder`.
    parts : mapping of name to function
        Functions that other processes can take (`functools.partial` of one of a module), where `jobs` is not 1.
    jobs : int
        Processes, each with one BLAS thread; -1 for one on each core.
    only_kept : bool
        Return what is kept, and run nothing.
    """
    paths = {name: folder / f"{name}.parquet" for name in parts}
    left = [name for name, path in paths.items() if not is_whole(path)]
    print(f"{len(paths) - len(left)} of {len(paths)} parts are in {folder}", flush=True)
    if not only_kept:
        _make([(name, parts[name], paths[name]) for name in left], jobs)
    return read_tables([path for name, path in paths.items() if not (only_kept and name in left)])


def _make(work: Sequence[tuple[str, Make, Path]], jobs: int) -> None:
    """Make parts, in several processes if wanted."""
    if jobs == 1:
        for one in work:
            _make_one(*one)
        return
    import joblib  # noqa: PLC0415 (only runs in parallel need it)

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        joblib.Parallel(n_jobs=jobs, batch_size=1)(joblib.delayed(_make_one)(*one) for one in work)


@one_blas_thread()
def _make_one(name: str, make: Make, path: Path) -> None:
    """Make a part, keep it, and say what it cost."""
    started = time.process_time()
    write_table(make(), path)
    print(f"{name}: {time.process_time() - started:.0f} CPU-s", flush=True)
