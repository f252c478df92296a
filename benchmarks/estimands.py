"""Do intervals hold for the score that is meant? ``ITEMBANK_SHARED=... python -m benchmarks.estimands`` (two hours).

95 % intervals of new models for the score of one run, and its mean over repeated runs.

simulated : a pool of 40,000 items, of which each repeat draws a benchmark; each model has luck of its own with each
    item, which stays from run to run. Both truths are known.
livecodebench, llmonkeys_pythia : the published rates of some 10, or thousands, of attempts are taken for the truth, and
    attempts are drawn from them. The benchmark is half of the items.
    Pythia checkpoints solve one attempt in a hundred at best, so that they attempt each item 100 or 1,000 times.
"""

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit

import itembank as ib
from itembank.errors import ItembankWarning
from itembank.estimation.estimand_names import ESTIMANDS

SETS = ("simulated", "livecodebench", "llmonkeys_pythia")
N_POOL, N_BENCHMARK, N_PAST, N_NEW = 40_000, 600, 80, 40
ATTEMPTS = {"simulated": (1, 5), "livecodebench": (1, 5), "llmonkeys_pythia": (100, 1000)}
"""Of new models at each item; past models have the larger number."""
LUCK = 1.5
"""Standard deviation of a model's own luck with an item, on the logit's scale."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/estimands.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    rows = [row for name in arguments.only for repeat in range(arguments.repeats) for row in estimates_of(name, repeat)]
    table = pl.DataFrame(rows)
    table.write_parquet(arguments.output)
    show(table)


def estimates_of(name: str, repeat: int) -> Iterator[dict[str, object]]:
    """Draw past and new models of a set; calibrate on attempts of the past ones, estimate the new ones."""
    rng = np.random.default_rng([sum(map(ord, name)), repeat])
    rates = simulated_rates(rng) if name == "simulated" else published_rates(name)
    order = rng.permutation(rates.shape[0])
    n_new = min(N_NEW, rates.shape[0] // 4)
    new, past = order[:n_new], order[n_new : n_new + N_PAST]
    n_items = N_BENCHMARK if name == "simulated" else rates.shape[1] // 2
    items = np.sort(rng.choice(rates.shape[1], n_items, replace=False))
    bank = calibrated(drawn(rates[np.ix_(past, items)], max(ATTEMPTS[name]), rng))
    for attempts in ATTEMPTS[name]:
        full = drawn(rates[np.ix_(new, items)], attempts, rng)
        truth = {
            "run": full.responses.mean(axis=1),
            "expected": rates[np.ix_(new, items)].mean(axis=1),
        }
        yield from tried(bank, full, truth, {"data": name, "repeat": repeat, "attempts": attempts})


def tried(bank, full, truth, where) -> Iterator[dict[str, object]]:
    """Estimate the scores of new models from some of their answers, whichever score is meant."""
    for n_items in (*(size for size in (30, 100) if size < full.n_items), full.n_items):
        selection = ib.select(bank, n_items, rng=0)
        answers = full.take(items=full.item_indices(selection.item_ids))
        for estimand in ESTIMANDS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ItembankWarning)
                found = ib.estimate(bank, answers, selection=selection, estimand=estimand)
            print(where, n_items, estimand, flush=True)
            for row in range(answers.n_models):
                yield {
                    **where,
                    "n_items": "all" if n_items == full.n_items else str(n_items),
                    "estimand": estimand,
                    "truth": truth[estimand][row],
                    "error": found.value[row, -1] - truth[estimand][row],
                    "is_inside": bool(found.low[row, -1] - 1e-9 <= truth[estimand][row] <= found.high[row, -1] + 1e-9),
                    "half_width": (found.high[row, -1] - found.low[row, -1]) / 2.0,
                }


def calibrated(responses: ib.ResponseMatrix) -> ib.Bank:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        return ib.build_bank(responses)


def drawn(rates, attempts: int, rng) -> ib.ResponseMatrix:
    """Draw attempts at every item, (n_models, n_items), which keep their names."""
    trials = np.full(rates.shape, attempts)
    return ib.ResponseMatrix.from_counts(rng.binomial(attempts, rates), trials)


def simulated_rates(rng) -> np.ndarray:
    """Probability of a right answer, (n_models, N_POOL), of one ability and luck of each model with each item."""
    slope = np.exp(0.4 * rng.standard_normal(N_POOL))
    difficulty = 1.5 * rng.standard_normal(N_POOL) - 0.5
    ability = rng.standard_normal(N_PAST + N_NEW)
    luck = LUCK * rng.standard_normal((ability.size, N_POOL))
    return expit(slope * (ability[:, None] - difficulty) + luck)


def published_rates(name: str) -> np.ndarray:
    """Rates of success of the models that attempted every item of a scenario, (n_models, n_items)."""
    scenario = {"livecodebench": "codegeneration", "llmonkeys_pythia": "GSM8K"}[name]
    path = Path(os.environ["ITEMBANK_SHARED"]) / "data" / name / "responses.parquet"
    table = pl.read_parquet(path).filter((pl.col("scenario") == scenario) & (pl.col("n_trials") >= 10))
    wide = table.pivot(on="item_id", index="model_id", values="response").sort("model_id")
    values = wide.drop("model_id").to_numpy()
    common = np.isnan(values).mean(axis=0) < 0.2
    values = values[:, common]
    return values[~np.isnan(values).any(axis=1)]


def show(table: pl.DataFrame) -> None:
    """Print coverage, its standard error over repeats, half-width and error, in points."""
    keys = ["data", "attempts", "n_items", "estimand"]
    of_repeat = table.group_by([*keys, "repeat"]).agg(
        pl.col("is_inside").mean(), pl.col("half_width").mean() * 100, pl.col("error").abs().mean() * 100
    )
    cells = of_repeat.group_by(keys).agg(
        coverage=pl.col("is_inside").mean(),
        se=pl.col("is_inside").std() / pl.len().sqrt(),
        half_width=pl.col("half_width").mean(),
        error=pl.col("error").mean(),
    )
    with pl.Config(tbl_rows=-1, float_precision=3):
        print(cells.sort(keys))


if __name__ == "__main__":
    main()
