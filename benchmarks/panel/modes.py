"""Both modes of the default on four kinds of new models: ``python -m benchmarks.panel.modes -o DIR``.

Items drawn by the bank, and V-optimal ones, beside the mean of as many random items and IRT++. New models are a random
quarter, later ones, the best and the worst quarter; past ones are the others. Figures are relative to the random
mean's, on the same models. Every split is kept when it is done, as in the panel.
"""

import argparse
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.kept_parts import kept_folder, run_parts
from benchmarks.panel.table import NAMES
from itembank.calibration.build import calibrate
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.own_means import own_means
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from itembank_studies.study_files import load_data
from itembank_studies.study_specs import DataSpec

SIZES = (30, 60, 100, 200)
MOST = 0.4
"""Of a set's items: of more, all ways come near the score."""
REPEATS = 10
RANDOM_SPLITS = 5
RANDOM, DRAWN, VOPTIMAL, IRT = "random items, their mean", "drawn", "v-optimal", "IRT++"
BANDS = {"random": "a random quarter", "date": "later ones", "best": "the best quarter", "worst": "the worst quarter"}
ONE = ("set", "band", "split", "n_items", "method", "target", "repeat")


@dataclass(frozen=True, slots=True)
class Case:
    """A set of responses."""

    data: str  # Folder of $ITEMBANK_SHARED/data
    date: str = ""  # Column of the models' table
    options: Mapping[str, Any] = field(default_factory=dict)  # Further choices of `DataSpec`


def one_scenario(name: str) -> dict[str, Any]:
    """Take one scenario of a set whose scenarios share items."""
    return {"prefix_scenario": True, "keep_items": {"column": "scenario", "value": name}}


CASES = {
    "openllm1_core": Case("openllm1_core", "first_seen_in_scrape"),
    "swebench_verified": Case("swebench_verified", "submission_date"),
    "alpacaeval2": Case(
        "alpacaeval2", "date_added_to_repo", {"drop_models": {"column": "adversarial_or_degenerate", "value": True}}
    ),
    "bfcl_v1": Case("bfcl_v1"),
    "mmlu_pro": Case(
        "mmlu-pro",
        options={
            "items": "items.csv",
            "response_column": "response_l3",
            "keep_items": {"column": "in_common_core", "value": True},
        },
    ),
    "codeexecution": Case("livecodebench", options=one_scenario("codeexecution")),
}
TITLES = {**NAMES, "codeexecution": "LiveCodeBench, code execution"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.modes", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), help="sets to run")
    parser.add_argument("--only-kept", action="store_true", help="tables of the splits that are done; run nothing")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/modes"))
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    found = []
    for name in arguments.only:
        folder = kept_folder(f"modes-{name}", [Path(__file__)], data=[CASES[name].data])
        found += run_parts(folder, parts(name), jobs=arguments.jobs, only_kept=arguments.only_kept)
    estimates = pl.concat(found)
    arguments.output.mkdir(parents=True, exist_ok=True)
    estimates.write_parquet(arguments.output / "estimates.parquet")
    tables = {
        "modes": overall_markdown(estimates),
        "modes-sets": sets_markdown(estimates),
        "modes-scenarios": scenarios_markdown(estimates),
    }
    for table, text in tables.items():
        (arguments.output / f"{table}.md").write_text(text, encoding="utf-8")
        print(text, end="\n\n")


def load(case: Case) -> ResponseMatrix:
    """Read the responses of a case, of models and items that hardly lack any."""
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / case.data
    responses = load_data(
        DataSpec(responses=("responses.parquet",), models="models.csv", folder=folder, **case.options)
    )
    responses = responses.take(models=np.flatnonzero(responses.observed.mean(axis=1) > 0.95))
    return responses.take(items=np.flatnonzero(responses.observed.mean(axis=0) > 0.93))


def parts(name: str) -> dict[str, Callable[[], pl.DataFrame]]:
    """Give the work of a set, a part for each split."""
    responses = load(CASES[name])
    return {
        f"{band}-{number}": partial(estimates_of, name, responses, (band, number), past, new)
        for band, number, past, new in splits(responses, CASES[name].date)
    }


def splits(responses: ResponseMatrix, date: str) -> list[tuple[str, int, np.ndarray, np.ndarray]]:
    """Divide the models into past and new ones, as rows, by band and number."""
    n, found = responses.n_models, []
    for number in range(RANDOM_SPLITS):
        order = np.random.default_rng(100 + number).permutation(n)
        found.append(("random", number, np.sort(order[n // 4 :]), np.sort(order[: n // 4])))
    if date:
        days = responses.models[date].cast(pl.String).fill_null("").to_numpy()
        cut = np.sort(days)[int(0.75 * n) - 1]
        if np.sum(days > cut) >= 5:
            found.append(("date", 0, np.flatnonzero(days <= cut), np.flatnonzero(days > cut)))
    score = np.nanmean(responses.responses, axis=1)
    low, high = np.quantile(score, [0.25, 0.75])
    found.append(("best", 0, np.flatnonzero(score < high), np.flatnonzero(score >= high)))
    return [*found, ("worst", 0, np.flatnonzero(score > low), np.flatnonzero(score <= low))]


def estimates_of(
    name: str, responses: ResponseMatrix, split: tuple[str, int], past: np.ndarray, new: np.ndarray
) -> pl.DataFrame:
    """Estimate the new models in all ways; a split has a band and a number."""
    band, number = split
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        bank = calibrate(responses.take(models=past))
        models = responses.take(models=new, items=responses.item_indices(bank.item_ids))
        truth = bank.targets.with_overall(bank.targets.scenario_means(models.responses))
        rows = []

        def add(method: str, n_items: int, repeat: int, scores: Any) -> None:
            about = {"set": name, "band": band, "split": number, "method": method, "n_items": n_items, "repeat": repeat}
            names = ["overall"] if bank.targets.n_scenarios == 1 else bank.targets.names
            for column, target in enumerate(names, start=len(bank.targets.names) - len(names)):
                rows.append(
                    pl.DataFrame(
                        {
                            "model_id": models.model_ids,
                            "truth": truth[:, column],
                            **{end: getattr(scores, end)[:, column] for end in ("value", "low", "high")},
                        }
                    ).with_columns(pl.lit(value).alias(key) for key, value in {**about, "target": target}.items())
                )

        for n_items in SIZES:
            if n_items > MOST * bank.n_items:
                continue
            for repeat in range(REPEATS):
                drawn, random = (select(bank, n_items, method=method, rng=repeat) for method in ("drawn", "random"))
                own = models.take(items=models.item_indices(random.item_ids))
                add(DRAWN, n_items, repeat, estimate(bank, models, selection=drawn).scores)
                add(RANDOM, n_items, repeat, own_means(bank, own, level=0.95).scores)
            for method, selector, estimator in ((VOPTIMAL, "v-optimal", "auto"), (IRT, "anchor-irt", "gp-irt")):
                chosen = select(bank, n_items, method=selector, rng=0)
                add(method, n_items, 0, estimate(bank, models, selection=chosen, method=estimator).scores)
    return pl.concat(rows)


def measures(estimates: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Error, coverage, half-width and interval score of each method, in points."""
    missed = pl.max_horizontal(pl.col("low") - pl.col("truth"), pl.col("truth") - pl.col("high"), 0.0)
    width = pl.col("high") - pl.col("low")
    known = estimates.filter(pl.col("truth").is_finite() & pl.col("value").is_finite())
    return known.group_by([*by, "method"]).agg(
        error=100 * (pl.col("value") - pl.col("truth")).abs().mean(),
        coverage=(missed <= 1e-9).mean(),
        half_width=50 * width.mean(),
        score=100 * (width + 40 * missed).mean(),
        n_new=pl.col("model_id").n_unique(),
    )  # fmt: skip


def ratios(estimates: pl.DataFrame) -> pl.DataFrame:
    """Relate what each method measures in a cell to the random mean's there."""
    cells = measures(estimates.filter(pl.col("target") == "overall"), ["set", "band", "n_items"])
    base = cells.filter(method=RANDOM).drop("method", "coverage", "n_new")
    both = cells.join(base, on=["set", "band", "n_items"], suffix="_base")
    return both.with_columns(pl.col(one) / pl.col(f"{one}_base") for one in ("error", "half_width", "score"))


def overall_markdown(estimates: pl.DataFrame) -> str:
    """Return a table: geometric means over sets of what each mode is to the random mean, and the worst coverage."""
    mean = {one: pl.col(one).log().mean().exp() for one in ("error", "half_width", "score")}
    pooled = ratios(estimates).group_by("band", "n_items", "method").agg(
        **mean, coverage=pl.col("coverage").mean(), least=pl.col("coverage").min(), sets=pl.len()
    )  # fmt: skip
    methods = (DRAWN, VOPTIMAL, IRT)
    head = "".join(f" | {method}: error | coverage (least) | half-width | score" for method in methods)
    lines = [f"| new models | items | sets{head} |", f"|{'---|' * (3 + 4 * len(methods))}"]
    for band, words in BANDS.items():
        for n_items in SIZES:
            rows = pooled.filter(band=band, n_items=n_items)
            if not rows.height:
                continue
            cells = [words, str(n_items), str(rows["sets"][0])]
            for method in methods:
                one = rows.filter(method=method).row(0, named=True)
                cells.append(f"{one['error']:.2f}")
                cells.append(f"{one['coverage']:.3f} ({one['least']:.2f})")
                cells += [f"{one['half_width']:.2f}", f"{one['score']:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def sets_markdown(estimates: pl.DataFrame) -> str:
    """Return a table of every set: errors and half-widths in points."""
    cells = measures(estimates.filter(pl.col("target") == "overall"), ["set", "band", "n_items"])
    methods = (RANDOM, DRAWN, VOPTIMAL, IRT)
    lines = [
        f"| data | new models | items{''.join(f' | {method}' for method in methods)} |",
        f"|{'---|' * (3 + len(methods))}",
    ]
    for name, title in TITLES.items():
        for band, words in BANDS.items():
            for n_items in SIZES:
                rows = {row["method"]: row for row in cells.filter(set=name, band=band, n_items=n_items).to_dicts()}
                if not rows:
                    continue
                each = [
                    f"{row['error']:.1f}, {row['coverage']:.2f}, ±{row['half_width']:.1f}"
                    for row in (rows[method] for method in methods)
                ]
                who = f"{words} ({rows[DRAWN]['n_new']})"
                lines.append(f"| {' | '.join([title, who, str(n_items), *each])} |")
    return "\n".join(lines)


def scenarios_markdown(estimates: pl.DataFrame) -> str:
    """Return a table: how often intervals of drawn items hold for scenario scores."""
    drawn = estimates.filter(method=DRAWN)
    scenarios = measures(drawn.filter(pl.col("target") != "overall"), ["band", "n_items"])
    lines = ["| new models | items | scenario scores: coverage | half-width |", "|---|---|---|---|"]
    for band, words in BANDS.items():
        for n_items in SIZES:
            one = scenarios.filter(band=band, n_items=n_items)
            if one.height:
                lines.append(f"| {words} | {n_items} | {one['coverage'][0]:.3f} | ±{one['half_width'][0]:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
