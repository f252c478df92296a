"""Design-based estimates against published figures: ``python -m benchmarks.design_based``.

Responses are drawn once for every model from the factors that the authors of arXiv 2601.20251 fitted to the Open LLM
Leaderboard v2 (9,574 items, taken as one scenario as they do); some models calibrate a bank, others are estimated.
The table has coverage and mean width of 95 % intervals and two effective sample sizes, squared ratios of widths:
against the plain mean of a simple random sample, and against the reference of that paper, independent draws with equal
probabilities, each right answer counted 1 / pi (Horvitz and Thompson), which is wider since the number drawn is random
as well. `bound` takes the true probabilities for predictions, which no item model can beat. With `--real NAMES` real
responses take the place of drawn ones, of the overall score, without a bound: a quarter of the models is estimated.
"""

import argparse
import dataclasses
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.accuracy.data_sets import NAMES, load
from itembank.bank.banks import Bank
from itembank.bank.calibrations import Calibration
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.estimation.design_based import design_based_estimates
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank.selection.select import select

SHARED = Path(os.environ.get("ITEMBANK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
Z = 1.959964


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.design_based", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the data sets")
    parser.add_argument("--models", type=int, default=1000, help="calibration models")
    parser.add_argument("--new", type=int, default=200, help="models to be estimated")
    parser.add_argument("--dims", type=int, default=15)
    parser.add_argument("--draws", type=int, default=20, help="selections for each budget and method")
    parser.add_argument("--items", type=int, nargs="+", default=[30, 100, 239, 478, 957, 1914])
    parser.add_argument("--wrong", action="store_true", help="give every item the parameters of another")
    parser.add_argument("--real", nargs="+", default=[], choices=NAMES[:-1], help="real data sets instead")
    parser.add_argument("--csv", type=Path, help="write the table here, too")
    arguments = parser.parse_args()
    started = time.process_time()
    rows = []
    for name in arguments.real or ["leaderboard2_factors"]:
        bank, responses, chances = real_problem(name, arguments) if arguments.real else problem(arguments)
        print(f"{name}: calibrated {bank.n_models} models, {time.process_time() - started:.0f} CPU-s", flush=True)
        for n_items in arguments.items:
            rows.extend(measure(bank, responses, chances, name=name, n_items=n_items, n_draws=arguments.draws))
    table = pl.DataFrame(rows)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=3, tbl_width_chars=160):
        print(table)
    if arguments.csv:
        table.write_csv(arguments.csv, float_precision=4)
    print(f"{time.process_time() - started:.0f} CPU-s in all")


def problem(arguments: argparse.Namespace) -> tuple[Bank, ResponseMatrix, np.ndarray]:
    """Return a bank, the responses of the new models, and their true probabilities."""
    factors = np.load(arguments.data / "leaderboard2_factors" / "factors.npz")
    rng = np.random.default_rng(0)
    rows = rng.permutation(factors["model_factors"].shape[0])[: arguments.models + arguments.new]
    logits = factors["model_factors"][rows].astype(np.float32) @ factors["item_factors"].astype(np.float32).T
    chances = 1.0 / (1.0 + np.exp(-logits))
    drawn = (rng.random(chances.shape, dtype=np.float32) < chances).astype(np.float64)
    history = ResponseMatrix.create(drawn[: arguments.models])
    spec = Variational("mirt", n_dims=arguments.dims) if arguments.dims > 1 else Variational()
    calibration = calibrate(history, spec)
    if arguments.wrong:
        others = calibration.parameters.take(rng.permutation(history.n_items))
        calibration = dataclasses.replace(calibration, parameters=others)
    return as_bank(history, calibration), ResponseMatrix.create(drawn[arguments.models :]), chances[arguments.models :]


def real_problem(name: str, arguments: argparse.Namespace) -> tuple[Bank, ResponseMatrix, None]:
    """Return a bank of three quarters of the models, and the complete responses of the others."""
    data_set = load(name, arguments.data)
    order = np.random.default_rng(0).permutation(data_set.responses.n_models)
    n_past = int(0.75 * order.shape[0])
    history, new = (data_set.responses.take(models=rows) for rows in (order[:n_past], order[n_past:]))
    whole = np.flatnonzero(~np.isnan(new.responses).any(axis=1))
    return as_bank(history, calibrate(history, data_set.spec)), new.take(models=whole), None


def as_bank(history: ResponseMatrix, calibration: Calibration) -> Bank:
    """Return a bank without what only gp-IRT needs."""
    targets = ScoreTargets.create(history.items)
    unknown = np.full(targets.n_scenarios, np.nan)
    return Bank("benchmark", history, calibration, targets, unknown, unknown)


def measure(
    bank: Bank, responses: ResponseMatrix, chances: np.ndarray | None, *, name: str, n_items: int, n_draws: int
) -> list[dict[str, float | str]]:
    """Rows of the table for one number of items."""
    targets = bank.targets
    truth = targets.with_overall(targets.scenario_means(responses.responses))[:, -1]
    counts = scenario_counts(bank, n_items)
    plain = width(bank, counts, responses.responses, lambda values: np.var(values, axis=1, ddof=1))
    independent = width(bank, counts, responses.responses, lambda values: np.mean(values**2, axis=1))

    def row(method: str, widths: np.ndarray, covered: float, error: float) -> dict[str, float | str]:
        return {
            "data": name,
            "items": n_items,
            "method": method,
            "coverage": covered,
            "width": float(widths.mean()),
            "rmse": error,
            "ess_plain_mean": float((plain.mean() / widths.mean()) ** 2),
            "ess_independent": float((independent.mean() / widths.mean()) ** 2),
            "ess_by_error": float(np.mean((plain / (2.0 * Z)) ** 2) / error**2),
        }

    found = [row("uniform, plain mean", plain, np.nan, float(np.sqrt(np.mean((plain / (2.0 * Z)) ** 2))))]
    covered, widths, errors = [], [], []
    for draw in range(n_draws):
        selection = select(bank, n_items, method="random", rng=draw)
        value, _, low, high = (array[:, -1] for array in design_based_estimates(bank, responses, selection))
        covered.append((low <= truth + 1e-12) & (truth <= high + 1e-12))
        widths.append(high - low)
        errors.append(value - truth)
    error = float(np.sqrt(np.mean(np.square(errors))))
    found.append(row("uniform, item model", np.array(widths), float(np.mean(covered)), error))
    if chances is not None:  # of one scenario
        noise = np.sqrt(chances * (1.0 - chances))
        uniform = width(bank, counts, noise**2, lambda values: np.mean(values, axis=1))
        # least variance over designs: sum (1 / pi - 1) p (1 - p) / N^2 with pi proportional to sqrt(p (1 - p))
        least = noise.mean(axis=1) ** 2 / n_items - (noise**2).mean(axis=1) / responses.n_items
        found.append(row("bound, uniform", uniform, np.nan, np.nan))
        found.append(row("bound, best probabilities", 2.0 * Z * np.sqrt(np.maximum(least, 0.0)), np.nan, np.nan))
    return found


def scenario_counts(bank: Bank, n_items: int) -> np.ndarray:
    """Items that a selection takes from each scenario."""
    names = np.array(select(bank, n_items, method="random", rng=0).scenarios)
    return np.array([np.sum(names == name) for name in bank.targets.scenarios])


def width(bank: Bank, counts: np.ndarray, values: np.ndarray, variance: Callable) -> np.ndarray:
    """Width of the normal interval for simple random samples of each scenario, (n_models,)."""
    targets = bank.targets
    total = np.zeros(values.shape[0])
    for j, (n, size) in enumerate(zip(counts, targets.scenario_sizes, strict=True)):
        inside = variance(values[:, targets.scenario_index == j])
        total += targets.scenario_weights[j] ** 2 * (1.0 - n / size) * inside / n
    return 2.0 * Z * np.sqrt(total)


if __name__ == "__main__":
    main()
