"""One fit over several processes, beside the same fit in one: ``python -m benchmarks.spread_fit``.

Simulated right and wrong answers of 2,000 models in a mapped file. ``here`` are CPU seconds of the process that calls,
``workers`` those of two workers, without their start. ``free cores`` is what both would take side by side on cores of
their own, ``here + workers / 2``: seconds of the clock on a machine that does nothing else. ``extra`` are CPU
milliseconds that a round takes beyond what one process takes for the same. Memory (MB) is the processes' own, without
pages of the file. ``same`` says whether the result is that of one process to the last bit. Dask and Ray are those of
`make test-clusters`, Ray by ``--backend ray``. It takes five CPU minutes.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.past_memory import Case, Watch, own_megabytes, simulate
from benchmarks.speed_commands import ONE_THREAD

CASES = {
    "5,000 complete": Case(2_000, 5_000, is_mapped=True),
    "20,000 complete": Case(2_000, 20_000, is_mapped=True),
    "100,000 complete": Case(2_000, 100_000, is_mapped=True),
    "50,000 a tenth": Case(2_000, 50_000, 0.1, "scattered", is_mapped=True),
    "100,000 a tenth": Case(2_000, 100_000, 0.1, "scattered", is_mapped=True),
    "100,000 two of 20": Case(2_000, 100_000, 0.1, "blocks", is_mapped=True),
}
BACKENDS = {"one process": "joblib", "loky": "joblib", "dask": "distributed", "ray": "ray"}
"""Each with the package that it needs."""
N_WORKERS = 2
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run each case by each backend, in a process of its own, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append", help="repeatable; all by default")
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="repeatable; all but Ray by default")
    parser.add_argument("--in-this-process", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_this_process is not None:
        print(json.dumps(fitted(CASES[options.case[0]], options.in_this_process, options.backend[0])))
        return
    names = ("wall", "here", "workers", "free cores", "rounds", "extra", "own MB", "worker MB")
    print(f"{'':20s}{'':13s}" + "".join(f"{name:>11s}" for name in names) + "  same")
    for name in options.case or CASES:
        with tempfile.TemporaryDirectory() as folder:
            simulate(CASES[name], Path(folder))
            _compare(name, Path(folder), options.backend or ["loky", "dask"])


def _compare(name: str, folder: Path, backends: list[str]) -> None:
    """Print how one process does it, and each backend."""
    alone = _run(name, folder, "one process")
    for backend in ["one process", *(one for one in backends if one != "one process")]:
        if importlib.util.find_spec(BACKENDS[backend]) is None:
            print(f"{name:20s}{backend:13s} is not installed", flush=True)
            continue
        row = alone if backend == "one process" else _run(name, folder, backend)
        extra = (row["here"] + row["workers"] - alone["here"]) / max(row["rounds"], 1)
        print(
            f"{name:20s}{backend:13s}{row['wall']:11.1f}{row['here']:11.1f}{row['workers']:11.1f}"
            f"{row['here'] + row['workers'] / N_WORKERS:11.1f}{row['rounds']:11d}{1000 * extra:11.0f}"
            f"{row['own']:11.0f}{row['worker']:11.0f}  {'yes' if row['digest'] == alone['digest'] else 'NO'}",
            flush=True,
        )


def _run(name: str, folder: Path, backend: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.spread_fit", "--case", name, "--backend", backend]
    done = subprocess.run(
        [*command, "--in-this-process", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD},
        check=True,
    )
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return row


def fitted(case: Case, folder: Path, backend: str) -> dict[str, Any]:
    """Calibrate on the workers of a backend, and say what that took."""
    from itembank.calibration.calibrate import calibrate  # noqa: PLC0415
    from itembank.calibration.calibration_specs import Variational  # noqa: PLC0415
    from itembank.calibration.variational import spread  # noqa: PLC0415
    from itembank.numerics.parallel import in_parallel  # noqa: PLC0415
    from itembank.responses.coded_responses import CodedResponses  # noqa: PLC0415

    rounds = []

    def counted(function: Any, parts: Any, *, n_jobs: int | None = None) -> Any:
        rounds.append(n_jobs)
        return in_parallel(function, parts, n_jobs=n_jobs)

    spread.in_parallel = counted  # type: ignore[attr-defined]
    codes = np.memmap(folder / "codes", np.uint8, "r", shape=(case.n_items, case.n_models))
    with workers(backend), Watch() as here, WatchWorkers() as there:
        list(in_parallel(load, [(number,) for number in range(4 * N_WORKERS)]))
        before, wall, cpu = seconds_of_workers(), time.perf_counter(), time.process_time()
        found = calibrate(CodedResponses.from_item_codes(codes), Variational("2pl"))
        row = {
            "wall": time.perf_counter() - wall,
            "here": time.process_time() - cpu,
            "workers": seconds_of_workers() - before,
        }
    parts = (found.parameters.loadings, found.parameters.intercept, found.abilities, found.history)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()
    n_rounds = 0 if backend == "one process" else len(rounds)
    return {**row, "rounds": n_rounds, "own": here.most, "worker": there.most, "digest": digest}


def load(_number: int) -> None:
    """Let a worker load what it needs."""
    import itembank.calibration.variational.spread  # noqa: F401, PLC0415

    time.sleep(0.2)  # so that every worker gets one of these


@contextmanager
def workers(backend: str) -> Iterator[None]:
    """Set joblib up as a user would."""
    import joblib  # noqa: PLC0415

    with ExitStack() as stack:
        if backend == "dask":
            import distributed  # noqa: PLC0415

            cluster = distributed.LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0")
            stack.enter_context(cluster)
            stack.enter_context(distributed.Client(cluster)).wait_for_workers(N_WORKERS)
            stack.enter_context(joblib.parallel_config("dask"))
        elif backend == "ray":
            import ray  # noqa: PLC0415
            from ray.util.joblib import register_ray  # noqa: PLC0415

            ray.init(num_cpus=N_WORKERS, include_dashboard=False, log_to_driver=False)
            stack.callback(ray.shutdown)
            register_ray()
            stack.enter_context(joblib.parallel_config("ray", n_jobs=N_WORKERS))
        elif backend == "loky":
            stack.enter_context(joblib.parallel_config(n_jobs=N_WORKERS))
        yield


class WatchWorkers(Watch):
    """Looks at how much memory each of the processes that this one has started holds itself."""

    def _look(self) -> None:
        while not self._done.wait(0.2):
            self.most = max([self.most, *(own_megabytes(process) for process in started())])


def started() -> list[int]:
    """Find the processes that this one has started, and those that these have started."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(status)
        if fields:
            parents[int(status.parent.name)] = int(fields[1])
    found = [os.getpid()]
    for one in found:  # grows as it goes
        found += [process for process, parent in parents.items() if parent == one]
    return found[1:]


def seconds_of_workers() -> float:
    """CPU seconds of all of them so far."""
    every = (_fields(Path(f"/proc/{process}/stat")) for process in started())
    return sum((int(fields[11]) + int(fields[12])) / TICKS for fields in every if fields)


def _fields(status: Path) -> list[str]:
    """Return what the system says of a process after its name; nothing when it has ended."""
    try:
        return status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


if __name__ == "__main__":
    main()
