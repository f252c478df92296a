"""Differences of models on real leaderboards: how wide their intervals are, and how often they hold the truth.

    python -m benchmarks.paired --data DIR -o benchmarks/results/paired.md

Half of the models calibrate a bank, chosen anew in every repeat; all pairs of the other half are compared from n
items and held against the difference of their scores on all items.
"""

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import t as student

from benchmarks.accuracy.data_sets import load
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.calibration.build import build_bank
from itembank.comparison.compare import compare
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.comparisons import Comparison
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS, SelectionSpec, Stratified

SHARED = Path(os.environ.get("ITEMBANK_SHARED", Path(__file__).resolve().parents[2] / "shared"))
NAMES = ("openllm1_core", "swebench_verified", "alpacaeval2")
SIZES = (30, 100)
MAXIMUM_NEW = 150  # 11,175 pairs: beyond 20,000 there is no bootstrap
CLOSE = 0.05
LEVEL = 0.95
COMPARED = {
    "calibrated, raw difference": "paired",
    "calibrated, gp-irt": "gp-irt",
    "calibrated, auto": "auto",
}


def run(
    name: str, folder: Path, selectors: list[str], n_repeats: int, *, by_date: bool = False
) -> Iterator[pl.DataFrame]:
    """One row for each way, repeat, selector and number of items."""
    data = load(name, folder)
    for repeat in range(n_repeats):
        order = np.random.default_rng([repeat, 7]).permutation(data.responses.n_models)
        if by_date:  # the older half calibrates; ties fall as they come
            order = order[np.argsort(data.dates[order], kind="stable")]
        half = order.size // 2
        bank = build_bank(data.responses.take(models=np.sort(order[:half])), data.spec)
        new = data.responses.take(models=np.sort(order[half:][:MAXIMUM_NEW]))
        truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses, missing=True))[:, -1]
        for selector in selectors:
            for n_items in SIZES:
                spec: SelectionSpec = Stratified("proportional") if selector == "random" else METHODS.resolve(selector)
                selection = select(bank, n_items, method=spec, rng=repeat)
                answers = new.take(items=new.item_indices(selection.item_ids))
                found = pl.concat(list(_ways(bank, answers, selection, truth)))
                yield found.with_columns(
                    data=pl.lit(name), repeat=pl.lit(repeat), selector=pl.lit(selector), n_items=pl.lit(n_items)
                )


def _ways(bank: Bank, answers: ResponseMatrix, selection: Selection, truth: np.ndarray) -> Iterator[pl.DataFrame]:
    compared = {
        name: compare(
            bank,
            answers,
            selection=selection,
            method=method,
            spec=ComparisonSpec(n_bootstrap=500 if method == "paired" else 0),
        )
        for name, method in COMPARED.items()
    }
    raw = compared["calibrated, raw difference"]
    true = truth[raw.pairs.second] - truth[raw.pairs.first]
    scores = estimate(bank, answers, selection=selection, level=LEVEL)
    column = scores.targets.index(OVERALL)
    value, half = scores.value[:, column], (scores.high - scores.low)[:, column] / 2.0
    d = value[raw.pairs.second] - value[raw.pairs.first]
    a, b = half[raw.pairs.first], half[raw.pairs.second]
    yield _row("two separate intervals", d - a - b, d + a + b, d, true)
    both = np.sqrt(a**2 + b**2)
    yield _row("independent errors", d - both, d + both, d, true)
    yield _classical(raw, true)
    yield _row(
        "paired bootstrap",
        raw.reference.bootstrap_low[:, 0],
        raw.reference.bootstrap_high[:, 0],
        raw.difference.value[:, 0],
        true,
    )
    for name, one in compared.items():
        yield _row(name, one.difference.low[:, 0], one.difference.high[:, 0], one.difference.value[:, 0], true)


def _classical(raw: Comparison, true: np.ndarray) -> pl.DataFrame:
    """Textbook paired interval of the raw difference."""
    d, degrees = raw.pairs.raw_difference[:, 0], raw.pairs.n_shared_items[:, 0] - 1.0
    statistic = student.isf(raw.reference.paired_t_p[:, 0] / 2.0, degrees)
    error = np.divide(np.abs(d), statistic, out=np.zeros_like(d), where=statistic > 0.0)
    half = student.ppf(0.5 + LEVEL / 2.0, degrees) * error
    known = d != 0.0  # a difference of 0 hides its standard error in this way of getting at it
    return _row("classical paired", (d - half)[known], (d + half)[known], d[known], true[known])


def _row(way: str, low: np.ndarray, high: np.ndarray, d: np.ndarray, true: np.ndarray) -> pl.DataFrame:
    inside, close = (low <= true) & (true <= high), np.abs(true) < CLOSE
    excludes = (low > 0.0) | (high < 0.0)
    return pl.DataFrame(
        {
            "way": way,
            "half_width": 100.0 * np.mean(high - low) / 2.0,
            "half_width_close": 100.0 * np.mean((high - low)[close]) / 2.0,
            "coverage": np.mean(inside),
            "coverage_close": np.mean(inside[close]),
            "error": 100.0 * np.mean(np.abs(d - true)),
            "decided": np.mean(excludes),
            "wrongly_decided": np.mean(excludes & (np.sign(d) != np.sign(true))),
        }
    )


def markdown(found: pl.DataFrame) -> str:
    """Table of the means over repeats."""
    mean = found.group_by("data", "selector", "n_items", "way", maintain_order=True).mean()
    lines = [
        "| data | items by | n | way | mean error | half-width | coverage | close pairs: half-width | coverage "
        "| decided | wrongly |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['data']} | {r['selector']} | {r['n_items']} | {r['way']} | {r['error']:.2f} | {r['half_width']:.1f} "
        f"| {r['coverage']:.3f} | {r['half_width_close']:.1f} | {r['coverage_close']:.3f} | {100 * r['decided']:.0f} % "
        f"| {100 * r['wrongly_decided']:.1f} % |"
        for r in mean.sort("data", "selector", "n_items", maintain_order=True).iter_rows(named=True)
    ]
    return "\n".join(lines) + "\n"


def compact(found: pl.DataFrame) -> str:
    """Half-width and coverage alone, a line a way: the table of docs/compare.md."""
    columns = found.select("data", "selector", "n_items").unique(maintain_order=True).sort("data", "n_items").rows()
    parts = []
    for selector in found["selector"].unique(maintain_order=True):
        own = [(data, n_items) for data, one, n_items in columns if one == selector]
        lines = [
            f"| items by {selector} | " + " | ".join(f"{data}, {n_items}" for data, n_items in own) + " |",
            "|---" * (len(own) + 1) + "|",
        ]
        for way in found["way"].unique(maintain_order=True):
            chosen = found.filter(pl.col("selector") == selector, pl.col("way") == way)
            means = chosen.group_by("data", "n_items").agg(pl.col("half_width", "coverage").mean())
            cells = {
                (r["data"], r["n_items"]): f"{r['half_width']:.1f} ({r['coverage']:.3f})"
                for r in means.iter_rows(named=True)
            }
            lines.append(f"| {way} | " + " | ".join(cells[key] for key in own) + " |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired", description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the data sets")
    parser.add_argument("--repeats", type=int, default=10, help="splits into known and new models")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), help="data sets to run")
    parser.add_argument("--selectors", nargs="+", default=["random", "anchor-irt"], help="how items are chosen")
    parser.add_argument("--by-date", action="store_true", help="calibrate on the older half")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/paired.md"))
    arguments = parser.parse_args()
    started = time.process_time()
    parts = []
    for name in arguments.only:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ItembankWarning)
            parts.extend(run(name, arguments.data, arguments.selectors, arguments.repeats, by_date=arguments.by_date))
        print(f"{name}: {time.process_time() - started:.0f} CPU-s", flush=True)
    found = pl.concat(parts)
    table = f"{compact(found)}\n{markdown(found)}"
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
