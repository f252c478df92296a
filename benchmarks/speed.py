"""Speed and memory, with ratios to other tools: ``python -m benchmarks.speed`` (``make bench``).

Every calibration runs in a process of its own on one thread, so that CPU seconds and peak memory are its alone.
Rivals run where they are installed, here or in the environment of ``--rival-python``. The last table is that of
`speed_commands`: what a user waits for at the command line.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import speed_bank, speed_commands, speed_scoring
from benchmarks.problems import Problem, judge, save_responses, simulate
from benchmarks.rivals import TOOLS

SHAPES = ((400, 1_000, 1), (400, 5_000, 1), (400, 28_000, 1), (400, 5_000, 5), (400, 28_000, 5))
OURS = ("itembank", "itembank mml")
# CPU seconds on one thread as published with the project's goals; larger ones extrapolated.
REFERENCE = {
    (1_000, 1): {"PyPI mirt 1.2.0": 1.3},
    (5_000, 1): {"PyPI mirt 1.2.0": 8.7, "py-irt 0.7.1": 100.0},
    (28_000, 1): {"PyPI mirt 1.2.0": 18.5, "py-irt 0.7.1": 1000.0},
    (5_000, 5): {"py-irt fork": 490.0},
    (28_000, 5): {"py-irt fork": 3000.0},
}
TARGETS = {(28_000, 1): 8.0, (28_000, 5): 30.0}


def main() -> None:
    options = _options()
    rows = [row for shape in SHAPES if shape[1] <= options.items for row in _calibrations(shape, options)]
    print()
    for part in (speed_scoring, speed_bank):
        for row in part.run():
            _print_timing(row)
    print()
    speed_commands.main()
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=28_000, help="largest number of items to calibrate")
    parser.add_argument("--rival-items", type=int, default=1_000, help="largest number of items to give to rivals")
    parser.add_argument("--rival-python", default=sys.executable, help="interpreter that has the rivals")
    parser.add_argument("--output", type=Path, help="write the calibration rows to this JSON file")
    return parser.parse_args()


def _calibrations(shape: tuple[int, int, int], options: argparse.Namespace) -> list[dict[str, object]]:
    """Run every tool on one problem, print a line each."""
    n_models, n_items, n_dims = shape
    problem = simulate(*shape)
    truth = judge(problem, problem.theta, problem.chances)
    print(
        f"\n{n_models} x {n_items}, {n_dims} dims, a tenth masked; truth {truth['held_out_log_likelihood']:.4f} a cell"
    )
    rows = []
    for tool in TOOLS:
        if (tool not in OURS and n_items > options.rival_items) or (tool == "itembank mml" and n_dims > 1):
            continue
        found = _run(tool, problem, n_dims, sys.executable if tool in OURS else options.rival_python)
        rows.append({"n_models": n_models, "n_items": n_items, "n_dims": n_dims, "tool": tool, **found})
        _print_calibration(rows[-1], rows[0])
    return rows


def _run(tool: str, problem: Problem, n_dims: int, python: str) -> dict[str, object]:
    """Fit one tool in a process of its own and judge the result."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        save_responses(source, problem.responses, n_dims)
        command = [python, "-m", "benchmarks.rivals", tool, str(source), str(target)]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **speed_commands.ONE_THREAD}, check=False
        )
        if done.returncode:
            return {"skipped": (done.stderr.strip().splitlines() or ["failed"])[-1]}
        cost = json.loads(done.stdout.strip().splitlines()[-1])
        if "skipped" in cost:
            return dict(cost)
        with np.load(target) as result:
            return {**cost, **judge(problem, result["theta"], result["chances"])}


def _print_calibration(row: dict[str, object], ours: dict[str, object]) -> None:
    name = str(row["tool"])
    if "skipped" in row:
        print(f"  {name:14s} skipped: {row['skipped']}")
        return
    line = (
        f"  {name:14s} {row['cpu_seconds']:8.2f} CPU-s {row['peak_megabytes']:7.0f} MB   "
        f"held-out {row['held_out_log_likelihood']:.4f}   r(ability) {row['r_ability']:.5f}"
    )
    if row is not ours:
        print(f"{line}   {float(str(row['cpu_seconds'])) / float(str(ours['cpu_seconds'])):.1f} times ours")
        return
    key = (int(str(row["n_items"])), int(str(row["n_dims"])))
    seconds = float(str(row["cpu_seconds"]))
    target = f"   target {TARGETS[key]:g}" if key in TARGETS else ""
    known = ", ".join(f"{tool} {cost:g} ({cost / seconds:.0f} x)" for tool, cost in REFERENCE[key].items())
    print(f"{line}{target}   published: {known}")


def _print_timing(row: dict[str, object]) -> None:
    target = row["target"]
    limit = "" if target is None else f"   target {1e3 * float(str(target)):g} ms"
    print(f"  {row['name']:55s} {1e3 * float(str(row['cpu_seconds'])):9.2f} ms{limit}")


if __name__ == "__main__":
    main()
