"""Calibration of more responses than the memory holds as numbers: ``python -m benchmarks.past_memory``.

Simulated right and wrong answers, each size in a process of its own on one thread. Large ones lie in a file that is
mapped. ``own MB`` is the most memory that the process held itself, ``with file`` also counts the pages of the file,
which the system takes back where it needs room. ``--case`` runs some of the sizes; ``large`` takes 15 minutes.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from benchmarks.speed_commands import ONE_THREAD
from itembank.numerics.arrays import BoolArray

N_BLOCKS = 20
"""Benchmarks of equal size, of which each model ran some, where missing cells are blocks."""
ITEMS_AT_ONCE = 64


@dataclass(frozen=True)
class Case:
    """A size: how much of it is answered, whether in whole benchmarks, and whether it lies in a mapped file."""

    n_models: int
    n_items: int
    answered: float = 1.0
    design: Literal["complete", "blocks", "scattered"] = "complete"
    is_mapped: bool = False
    n_dims: int = 1


CASES = {
    "in-core": Case(400, 28_000),
    "tenth-missing": Case(2_000, 28_000, 0.9, "scattered"),
    "complete": Case(2_000, 28_000),
    "blocks": Case(2_000, 28_000, 0.1, "blocks"),
    "scattered": Case(2_000, 28_000, 0.1, "scattered"),
    "more-blocks": Case(2_000, 100_000, 0.1, "blocks"),
    "more-scattered": Case(2_000, 100_000, 0.1, "scattered"),
    "large": Case(10_000, 100_000, is_mapped=True),
    "larger": Case(10_000, 250_000, is_mapped=True),
}
USUAL = [name for name in CASES if name not in {"large", "larger"}]


def main() -> None:
    """Run each case in a process of its own and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append", help="repeatable; all but the large ones by default")
    parser.add_argument("--in-this-process", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_this_process is not None:
        print(json.dumps(fitted(CASES[options.case[0]], options.in_this_process)))
        return
    print(
        f"{'':16s}{'models x items':>18s} {'answered':>18s} {'CPU-s':>7s} {'own MB':>7s} {'with file':>9s} r(ability)"
    )
    for name in options.case or USUAL:
        print(_line(name, CASES[name]), flush=True)


def _line(name: str, case: Case) -> str:
    with tempfile.TemporaryDirectory() as folder:
        simulate(case, Path(folder))
        command = [sys.executable, "-m", "benchmarks.past_memory", "--case", name, "--in-this-process", folder]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}, check=True)
    row = json.loads(done.stdout.strip().splitlines()[-1])
    size = f"{case.n_models:,} x {case.n_items:,}"
    answered = f"{100 * case.answered:.0f} % {case.design}"
    return (
        f"{name:16s}{size:>18s} {answered:>18s} {row['cpu_seconds']:7.1f} {row['own_megabytes']:7.0f} "
        f"{row['peak_megabytes']:9.0f} {row['r_ability']:.5f}  {row['n_sweeps']} sweeps"
    )


def simulate(case: Case, folder: Path, seed: int = 0) -> None:
    """Write answers, item after item, and abilities."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=case.n_models).astype(np.float32)
    ran = _models_of_blocks(case, rng)
    with (folder / "codes").open("wb") as file:
        for first in range(0, case.n_items, ITEMS_AT_ONCE):
            n_items = min(ITEMS_AT_ONCE, case.n_items - first)
            slope = rng.lognormal(0.0, 0.35, size=(n_items, 1)).astype(np.float32)
            intercept = rng.normal(0.0, 1.2, size=(n_items, 1)).astype(np.float32)
            shape = (n_items, case.n_models)
            codes = (rng.random(shape, dtype=np.float32) < expit(slope * ability + intercept)).astype(np.uint8)
            if case.design == "scattered":
                codes[rng.random(shape, dtype=np.float32) >= case.answered] = 255
            codes[~ran[np.arange(first, first + n_items) * N_BLOCKS // case.n_items]] = 255
            codes.tofile(file)
    np.save(folder / "ability.npy", ability)


def _models_of_blocks(case: Case, rng: np.random.Generator) -> BoolArray:
    """Which models ran which benchmark, (N_BLOCKS, n_models): as many each, at random."""
    if case.design != "blocks":
        return np.ones((N_BLOCKS, case.n_models), dtype=bool)
    place = rng.permuted(np.tile(np.arange(N_BLOCKS)[:, None], case.n_models), axis=0)
    ran: BoolArray = place < round(case.answered * N_BLOCKS)
    return ran


def fitted(case: Case, folder: Path) -> dict[str, Any]:
    """Calibrate, and compare the abilities with the truth."""
    from itembank.calibration.calibrate import calibrate  # noqa: PLC0415
    from itembank.calibration.calibration_specs import Variational  # noqa: PLC0415
    from itembank.responses.coded_responses import CodedResponses  # noqa: PLC0415

    shape = (case.n_items, case.n_models)
    path = folder / "codes"
    codes = (
        np.memmap(path, np.uint8, "r", shape=shape) if case.is_mapped else np.fromfile(path, np.uint8).reshape(shape)
    )
    responses = CodedResponses.from_item_codes(codes)
    with Watch() as watch:
        start = time.process_time()
        found = calibrate(responses, Variational("2pl"))
        seconds = time.process_time() - start
    truth = np.load(folder / "ability.npy")
    return {
        "cpu_seconds": seconds,
        "own_megabytes": watch.most,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "r_ability": float(np.corrcoef(found.abilities[:, 0], truth)[0, 1]),
        "n_sweeps": found.n_iterations,
        "converged": found.converged,
    }


class Watch:
    """Looks twenty times a second at how much memory is the process's own, in MB (on Linux)."""

    def __init__(self) -> None:
        self.most = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.05):
            self.most = max(self.most, _own_megabytes())


def _own_megabytes() -> float:
    """Memory of this process but for mapped files; none where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("RssAnon"):
            return float(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
