"""Adaptive sessions against the default of `select` and `estimate` on real leaderboards.

Models are split at random, three quarters (450 at most) to the bank. The others are replayed through sessions with
budgets of 16 to 128 items, and estimated from as many items chosen beforehand. Mean absolute error of the overall
score and median half-width in points; share of 95 % intervals that held. ± one standard error over repeats.

    python -m benchmarks.sessions [--sets swebench_verified,bfcl_v1] [--repeats 5] [--jobs 2] [-o DIR]
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy.data_sets import load
from itembank.bank.banks import Bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.calibration.dimensions import choose_n_dims
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates
from itembank.numerics.arrays import FloatArray
from itembank.planning.select import select
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.session_spec import SessionSpec
from itembank_studies.replays import replay

REPEATS = {"swebench_verified": 3, "bfcl_v1": 3, "openllm1_core": 1}
"""Of each set, unless told: the largest takes as long twice as the others five times."""
SIZES = (16, 32, 64, 128)
MOST_TRAINED = 450
HALF_WIDTH = 0.04
SESSIONS = {
    "random": "session: random items",
    "d-optimal": "session: D-optimal",
    "v-optimal": "session: V-optimal (default)",
}


def main() -> None:
    arguments = _arguments()
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data"
    warnings.simplefilter("ignore", ItembankWarning)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets.split(","):
        responses = _responses(name, folder)
        found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
        n_repeats = arguments.repeats or REPEATS.get(name, 5)
        for repeat in range(n_repeats):
            for key, numbers in _one(responses, repeat, arguments.jobs):
                found.setdefault(key, []).append(numbers)
            print(f"{name}: repeat {repeat + 1} of {n_repeats}", file=sys.stderr)
        print(f"\n{name}: {responses.n_models} models x {responses.n_items} items, {n_repeats} repeats\n")
        print(markdown(found), flush=True)
        (arguments.output / f"sessions-{name}.md").write_text(markdown(found), encoding="utf-8")


def _responses(name: str, folder: Path) -> ResponseMatrix:
    if name != "bfcl_v1":
        return load(name, folder).responses
    here = folder / name
    return read_responses([here / "responses.parquet"], models=here / "models.csv", items=here / "items.csv")


def _one(responses: ResponseMatrix, repeat: int, n_jobs: int) -> Iterator[tuple[tuple[str, str], tuple[float, ...]]]:
    """Yield (method, column), (error, share held, half-width, items) of one split."""
    order = np.random.default_rng([repeat, 4]).permutation(responses.n_models)
    n_new = max(round(0.25 * responses.n_models), 1)
    train, new = np.sort(order[n_new:])[:MOST_TRAINED], np.sort(order[:n_new])
    past = responses.take(models=train)
    n_dims = choose_n_dims(past).n_dims
    spec = Variational("mirt" if n_dims > 1 else "2pl", n_dims=n_dims)
    bank = calibrate(past, spec)
    by_task = calibrate(past, replace(spec, by_task=True))
    tested = responses.take(models=new)
    truth = bank.targets.with_overall(bank.targets.scenario_means(tested.responses, missing=True))[:, -1]
    for n in SIZES:
        for method, found in _estimates(bank, tested, n, repeat, n_jobs):
            yield (method, str(n)), _numbers(found, truth, float(n))
        found = replay(by_task, tested, SessionSpec(budget=Budget(n)), n_jobs=n_jobs).estimates
        yield ("the same, bank calibrated by task", str(n)), _numbers(found, truth, float(n))
    rule = Stopping(half_width={"overall": HALF_WIDTH})
    stopped = replay(bank, tested, SessionSpec(stopping=rule, budget=Budget(max(SIZES))), n_jobs=n_jobs)
    yield (
        ("Stopped at a half-width of 4 points, V-optimal", "stop"),
        _numbers(stopped.estimates, truth, float(np.mean(stopped.n_answered))),
    )


def _estimates(
    bank: Bank, tested: ResponseMatrix, n: int, repeat: int, n_jobs: int
) -> Iterator[tuple[str, ScoreEstimates]]:
    for criterion, label in SESSIONS.items():
        yield (
            label,
            replay(bank, tested, SessionSpec(criterion, budget=Budget(n), seed=repeat), n_jobs=n_jobs).estimates,
        )
    yield (
        "the same, model-based intervals",
        replay(bank, tested, SessionSpec(budget=Budget(n), interval="model-based"), n_jobs=n_jobs).estimates,
    )
    selection = select(bank, n, rng=repeat)
    yield "chosen beforehand", estimate(bank, tested, selection=selection)


def _numbers(found: ScoreEstimates, truth: FloatArray, n_items: float) -> tuple[float, ...]:
    value, low, high = (part[:, -1] for part in (found.value, found.low, found.high))
    held = (low <= truth + 1e-12) & (truth <= high + 1e-12)
    return 100.0 * np.mean(np.abs(value - truth)), np.mean(held), 50.0 * np.median(high - low), n_items


def markdown(found: dict[tuple[str, str], list[tuple[float, ...]]]) -> str:
    """Return a table of a set: methods down, numbers of items across, the smallest error of each in bold."""
    methods = list(dict.fromkeys(method for method, column in found if column != "stop"))
    errors = {(method, n): float(np.mean(found[method, str(n)], axis=0)[0]) for method in methods for n in SIZES}
    lines = ["| | " + " | ".join(f"{n} items" for n in SIZES) + " |", "|---" * (len(SIZES) + 1) + "|"]
    for method in methods:
        cells = [_cell(found[method, str(n)]) for n in SIZES]
        is_least = [errors[method, n] <= min(errors[other, n] for other in methods) for n in SIZES]
        shown = [_bold(cell) if least else cell for cell, least in zip(cells, is_least, strict=True)]
        lines.append(f"| {method} | {' | '.join(shown)} |")
    for (method, column), numbers in found.items():
        if column == "stop":
            n_items = np.mean([one[3] for one in numbers])
            lines.append(f"\n{method}: {n_items:.0f} items on the mean, {_cell(numbers)}.")
    return "\n".join(lines)


def _bold(cell: str) -> str:
    error, rest = cell.split(" (")
    return f"**{error}** ({rest}"


def _cell(numbers: list[tuple[float, ...]]) -> str:
    error, held, width, _ = np.mean(numbers, axis=0)
    spread = np.std([one[0] for one in numbers], ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else float("nan")
    return f"{error:.2f} ± {spread:.2f} ({held:.2f}; {width:.1f})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(REPEATS))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/sessions"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
