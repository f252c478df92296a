"""Speed and memory: ``python -m benchmarks.speed`` (``make bench``).

Every calibration runs in a process of its own on one thread, so that CPU seconds and peak memory are its alone. The
last table is that of `speed_commands`: what a user waits for at the command line. Other tools stand beside ours in
`benchmarks.rivals`.
"""

import argparse
import json
import sys
from pathlib import Path

from benchmarks import speed_bank, speed_commands, speed_scoring
from benchmarks.problems import judge, simulate
from benchmarks.rivals.fits import Runner
from benchmarks.rivals.tools import TOOLS

SHAPES = ((400, 1_000, 1), (400, 5_000, 1), (400, 28_000, 1), (400, 5_000, 5), (400, 28_000, 5))
LIMIT = 600
"""CPU seconds that a fit may take."""
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
    rows = [row for shape in SHAPES if shape[1] <= options.items for row in _calibrations(shape)]
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
    parser.add_argument("--output", type=Path, help="write the calibration rows to this JSON file")
    return parser.parse_args()


def _calibrations(shape: tuple[int, int, int]) -> list[dict[str, object]]:
    """Run our methods on one problem, print a line each."""
    n_models, n_items, n_dims = shape
    problem = simulate(*shape)
    truth = judge(problem, problem.theta, problem.chances)
    print(
        f"\n{n_models} x {n_items}, {n_dims} dims, a tenth masked; truth {truth['held_out_log_likelihood']:.4f} a cell"
    )
    rows = []
    for tool in TOOLS:
        if tool.is_ours and tool.fits(n_dims):
            found = Runner(sys.executable, LIMIT).fit(tool, problem, n_dims)
            rows.append({"n_models": n_models, "n_items": n_items, "n_dims": n_dims, "tool": tool.name, **found})
            _print_calibration(rows[-1], rows[0])
    return rows


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
