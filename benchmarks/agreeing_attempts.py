"""Coverage of 95 % intervals where attempts at one item agree more than chance: the table of docs/item-models.md.

100 Rasch items; 60 models calibrate a bank, 40 others answer 20 of the items, each so many times. Attempts of one model
at one item are identical, or beta-binomial with an intra-class correlation of 0.3.

    python -m benchmarks.agreeing_attempts [--banks 6]
"""

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

import itembank as ib
from itembank.errors import ItembankWarning
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

N_PAST, N_NEW, N_ITEMS, N_ANSWERED = 60, 40, 100, 20
ATTEMPTS = (1, 10, 100)
ROWS = (
    ("identical", "auto", "p-irt", "model-based"),
    ("identical", "binomial", "p-irt", "model-based"),
    ("identical", "auto", "stacked", "calibrated"),
    ("correlation 0.3", "auto", "p-irt", "model-based"),
)
"""Attempts, family asked for, estimate, interval."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banks", type=int, default=6)
    n_banks = parser.parse_args().banks
    warnings.simplefilter("ignore", ItembankWarning)
    print(f"| attempts | estimate, intervals | {' | '.join(map(str, ATTEMPTS))} |")
    print("|---" * (2 + len(ATTEMPTS)) + "|")
    for kind, family, method, interval in ROWS:
        cells = [_cell(list(_shares(kind, family, (method, interval), n, n_banks))) for n in ATTEMPTS]
        asked = "" if family == "auto" else f", `{family}` asked for"
        print(f"| {kind} | {method}, {interval}{asked} | {' | '.join(cells)} |", flush=True)


def _shares(kind: str, family: str, way: tuple[str, str], n_attempts: int, n_banks: int) -> Iterator[float]:
    """Yield the share of new models whose interval held, a bank at a time."""
    for draw in range(n_banks):
        rng = np.random.default_rng(1000 + draw)
        rates = _rates(kind, n_attempts, rng)
        ids = [f"model-{number}" for number in range(len(rates))]
        responses = ResponseMatrix.create(rates, model_ids=ids, n_trials=np.full(rates.shape, n_attempts))
        bank = ib.build_bank(
            responses.take(models=np.arange(N_PAST)), ib.calibrations.Variational("2pl", family=family)
        )
        answered = np.sort(rng.choice(N_ITEMS, N_ANSWERED, replace=False))
        new = responses.take(models=np.arange(N_PAST, N_PAST + N_NEW), items=answered)
        found = ib.estimate(bank, new, method=way[0], interval=way[1])
        column = list(found.targets).index(OVERALL)
        truth = rates[N_PAST:].mean(axis=1)
        low, high = found.low[:, column] - 1e-12, found.high[:, column] + 1e-12
        yield float(np.mean((low <= truth) & (truth <= high)))


def _rates(kind: str, n_attempts: int, rng: np.random.Generator) -> FloatArray:
    """Share of right attempts, (N_PAST + N_NEW, N_ITEMS)."""
    chances = 1.0 / (1.0 + np.exp(rng.normal(size=N_ITEMS) - rng.normal(size=(N_PAST + N_NEW, 1))))
    if kind == "identical":
        return (rng.random(chances.shape) < chances).astype(np.float64)
    precision = 1.0 / 0.3 - 1.0  # the correlation of attempts is 1 / (1 + precision)
    return rng.binomial(n_attempts, rng.beta(chances * precision, (1.0 - chances) * precision)) / n_attempts


def _cell(shares: list[float]) -> str:
    return f"{np.mean(shares):.3f} ± {np.std(shares, ddof=1) / np.sqrt(len(shares)):.3f}"


if __name__ == "__main__":
    main()
