"""How long adaptive testing takes: a step of a session, many sessions at once, and the nested fit behind them.

Run with ``python -m benchmarks.adaptive_speed``; ``--profile`` shows where the time of a step goes, and
``--rival-python`` names an interpreter that has the rivals. Each row is measured in a process of its own.
"""

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from joblib.externals.loky import get_reusable_executor

from benchmarks.adaptive_banks import bank_and_models
from benchmarks.adaptive_reference import TOOLS
from itembank.bank.banks import Bank
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import JointMAP
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.replay import replay
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank.studies.simulation.simulate import simulate

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
N_DIMS = 4
N_STEPS = 100
STEP_TARGETS = {30_000: 1.5e-3, 110_000: 5e-3}
N_MODELS, N_ITEMS, SESSIONS_TARGET = 400, 28_000, 60.0
NESTED_TARGET, NESTED_GIGABYTES = 180.0, 3.0


def main() -> None:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adaptive_speed", description=__doc__)
    parser.add_argument("--profile", action="store_true", help="only: where the time of a session's steps goes")
    parser.add_argument(
        "--rival-python", default=sys.executable, help="interpreter that has catsim and fluid-benchmarking"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes for many sessions")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument("--part", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part[0]](int(options.part[1]))))
    elif options.profile:
        profile(30_000)
    else:
        _print_all(options)


def _print_all(options: argparse.Namespace) -> None:
    chosen = [options.only] if options.only else list(PARTS)
    if "steps" in chosen:
        print(f"One ask and tell, {N_DIMS} dimensions, v-optimal, the median of {N_STEPS}")
        for n_items, target in STEP_TARGETS.items():
            row = _measured([sys.executable, "-m", "benchmarks.adaptive_speed", "--part", "steps", str(n_items)])
            print(
                f"  {n_items:7,} items   {1e3 * row['median_cpu']:6.2f} ms CPU   {1e3 * row['median_wall']:6.2f} ms "
                f"wall   largest {1e3 * row['largest_cpu']:.2f} ms   {row['gigabytes']:.2f} GB   "
                f"target {1e3 * target:g} ms"
            )
            _print_reference(n_items, row["median_cpu"], options.rival_python)
    if "sessions" in chosen:
        row = _measured([sys.executable, "-m", "benchmarks.adaptive_speed", "--part", "sessions", str(options.jobs)])
        print(f"Sessions of {N_STEPS} items for {N_MODELS} models over {N_ITEMS:,} items, {options.jobs} processes")
        print(
            f"  {row['wall']:6.1f} s wall   {row['replay_cpu']:6.1f} s CPU   largest process "
            f"{row['gigabytes']:.2f} GB   target {SESSIONS_TARGET:g} s on two idle cores"
        )
    if "nested" in chosen:
        row = _measured([sys.executable, "-m", "benchmarks.adaptive_speed", "--part", "nested", "0"])
        print(f"Nested joint MAP in {N_DIMS} dimensions, 65 x 109,564: {row['message']}")
        print(
            f"  {row['wall']:6.1f} s wall   {row['fit_cpu']:6.1f} s CPU   {row['gigabytes']:.2f} GB   "
            f"target {NESTED_TARGET:g} s, {NESTED_GIGABYTES:g} GB"
        )


def _print_reference(n_items: int, ours: float, python: str) -> None:
    """Print what one-dimensional tools take that go over the whole bank in Python."""
    for tool in TOOLS:
        interpreter = sys.executable if tool == "plain Python" else python
        row = _measured([interpreter, "-W", "ignore", "-m", "benchmarks.adaptive_reference", tool, str(n_items), "30"])
        if "skipped" in row:
            print(f"    {tool}, 1 dimension: skipped, {row['skipped']}")
            continue
        seconds = row["median_seconds"]
        print(f"    {tool}, 1 dimension: {1e3 * seconds:.1f} ms CPU, {seconds / ours:.0f} times ours")


def _measured(command: list[str]) -> dict:
    """Run a part in a process of its own; add the peak memory of its largest process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD})
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    row = json.loads(output.strip().splitlines()[-1])
    return {**row, "gigabytes": usage.ru_maxrss / 1e6}


def run_steps(n_items: int) -> dict[str, object]:
    """Time each ask with its tell in one session."""
    bank, new = bank_and_models(n_items, N_DIMS)
    cpu, wall = [], []
    for row in range(3):
        each_cpu, each_wall = _session_steps(bank, new, row)
        cpu, wall = cpu + each_cpu, wall + each_wall
    return {"median_cpu": float(np.median(cpu)), "largest_cpu": max(cpu), "median_wall": float(np.median(wall))}


def _session_steps(bank: Bank, new: ResponseMatrix, row: int) -> tuple[list[float], list[float]]:
    answers = dict(zip(new.item_ids, new.responses[row], strict=True))
    session = AdaptiveSession(SessionPool.create(bank, SessionSpec(budget=Budget(n_items=N_STEPS))))
    cpu, wall = [], []
    for _ in range(N_STEPS):
        started = time.process_time(), time.perf_counter()
        (item,) = session.ask()
        session.tell(item, answers[item])
        cpu.append(time.process_time() - started[0])
        wall.append(time.perf_counter() - started[1])
    return cpu, wall


def run_sessions(n_jobs: int) -> dict[str, object]:
    """Time replaying many models; not the fits behind calibrated intervals, which a bank makes once."""
    bank, new = bank_and_models(N_ITEMS, N_DIMS, n_new=N_MODELS)
    started = time.perf_counter(), _cpu_of_all()
    result = replay(bank, new, SessionSpec(budget=Budget(n_items=N_STEPS), interval="model-based"), n_jobs=n_jobs)
    wall = time.perf_counter() - started[0]
    get_reusable_executor().shutdown(wait=True)  # the CPU time of processes counts once they are gone
    if not (result.n_answered == N_STEPS).all():
        raise SystemExit("not every session asked its items")
    return {"wall": wall, "replay_cpu": _cpu_of_all() - started[1]}


def _cpu_of_all() -> float:
    """CPU seconds of this process and of those it started that have ended."""
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def run_nested(_: int) -> dict[str, object]:
    """Time the nested fit of data of the published shape."""
    made = simulate(rng=0).responses
    started = time.perf_counter(), time.process_time()
    found = calibrate(made, JointMAP(item_model="nested", n_dims=N_DIMS))
    return {
        "wall": time.perf_counter() - started[0],
        "fit_cpu": time.process_time() - started[1],
        "message": found.message,
    }


PARTS: dict[str, Callable[[int], dict[str, object]]] = {
    "steps": run_steps,
    "sessions": run_sessions,
    "nested": run_nested,
}


def profile(n_items: int, n_rows: int = 18) -> None:
    """Print where the time of a session's steps goes, by functions' own time."""
    bank, new = bank_and_models(n_items, N_DIMS)
    _session_steps(bank, new, 0)
    watch = cProfile.Profile()
    watch.runcall(_session_steps, bank, new, 1)
    pstats.Stats(watch).strip_dirs().sort_stats("tottime").print_stats(n_rows)


if __name__ == "__main__":
    main()
