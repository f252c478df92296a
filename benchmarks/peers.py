"""Other ways to score a model from few items, on the same splits: ``python -m benchmarks.peers``.

Every peer gets the splits, past models and numbers of items of the panel: SWE-bench Verified (random, newest agents)
and Open LLM v1 (random). tinyBenchmarks is gp-IRT on IRT anchors; metabench, DISCO and AIPW are those of the package of
rivals. Three more are one rule each and written here:

- random items and Student's t interval of their mean, as Inspect's `ci()` and evalconfidence's `standard_error` give
  it; and the same items with itembank's design-based interval;
- the mid-range filter (arXiv 2603.23749): random items of those that 30 to 70 % of past models solve, their mean as it
  is, and corrected by the line through past models;
- Fluid benchmarking (arXiv 2509.11106): the item of most Fisher information at the ability so far, one item model for
  the benchmark, so only where one ability serves it. Its score is the expected one at the last ability.

Rules that draw at random draw ten times for each split. Others choose items once, and ten times where there is one
split alone (newest), since clusters begin by chance.
"""

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from benchmarks.kept_parts import kept_folder, run_parts
from benchmarks.panel.studies import HERE as PANEL
from benchmarks.panel.studies import panel_study
from benchmarks.panel.table import NAMES
from benchmarks.resampling import IntervalQuality, mean_error
from benchmarks.rivals.plug_in import METHODS
from itembank.bank.banks import Bank
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_reach
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix
from itembank.selection.selector_specs import Stratified
from itembank.sessions.limits import Budget
from itembank.sessions.session_spec import SessionSpec
from itembank_studies.comparison_study import prepare_fold
from itembank_studies.replays import replay
from itembank_studies.splits import Fold, answers_of, folds_of
from itembank_studies.study_files import load_data
from itembank_studies.study_specs import StudySpec

SPLITS = {"swebench_verified": ("random", "newest"), "openllm1_core": ("random",)}
REPEATS = {"swebench_verified": 10, "openllm1_core": 5}
N_DRAWS = 10
MID_RANGE = (0.3, 0.7)
ABILITIES = np.linspace(-4.0, 4.0, 161)
CHOSEN = {
    "itembank, default": ("v-optimal", "auto", "calibrated"),
    "tinyBenchmarks (IRT++)": ("anchor-irt", "gp-irt", "model-based"),
    "metabench": ("information", "metabench", "model-based"),
    "DISCO, nearest neighbours": ("disagreement", "knn", "model-based"),
    "DISCO, random forest": ("disagreement", "random-forest", "model-based"),
}
"""Selector, estimator and interval; only the default's interval is the method's own and shown."""
OWN, SESSION, DESIGN = "itembank, default", "itembank, session", "random items, itembank's design-based interval"
MEAN, AIPW = "random items, mean and t interval", "random items, AIPW"
WITH_INTERVAL = (OWN, SESSION, DESIGN, MEAN)
Scores = tuple[FloatArray, FloatArray, FloatArray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/peers"))
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1 for one on each core")
    arguments = parser.parse_args()
    lines = ["| data | split | items | method | error | Kendall's tau | coverage | half-width |", f"|{'---|' * 8}"]
    for name, splits in SPLITS.items():
        spec, files = panel_study(name), [Path(__file__), METHODS]
        responses = load_data(spec.data)
        folder = kept_folder(f"peers-{name}", files, data=[name], settings=[PANEL / f"{name}.toml"])
        folds = folds_of([one for one in spec.splits if one.name in splits], responses, REPEATS[name], spec.seed)
        parts = {f"{fold.split}-{fold.repeats[0]}": partial(fold_scores, spec, responses, fold) for fold in folds}
        found = pl.concat(run_parts(folder, parts, jobs=arguments.jobs))
        for (split, size, method), rows in found.group_by("split", "n_items", "method", maintain_order=True):
            lines.append(f"| {NAMES[name]} | {split} | {size} | {method} | {_cells(rows, str(method))} |")
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "peers.md").write_text("\n".join(lines), encoding="utf-8")
    print(*lines, sep="\n")


def _cells(rows: pl.DataFrame, method: str) -> str:
    """Return the figures of one method: error, rank correlation within a split and draw, coverage, half-width."""
    taus = [kendalltau(one["estimate"], one["truth"]).statistic for _, one in rows.group_by("repeat", "draw")]
    intervals = " - | -"
    if method in WITH_INTERVAL:
        quality = IntervalQuality.of(rows)
        intervals = f" {quality.coverage:.3f} | {quality.half_width:.1f}"
    return f"{mean_error(rows)} | {np.mean(taus):.3f} |{intervals}"


def fold_scores(spec: StudySpec, responses: ResponseMatrix, fold: Fold) -> pl.DataFrame:
    """Return the estimates of all methods in one split, a row a new model, method, number of items and draw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        prepared = prepare_fold(spec, responses, fold)
        new, truth = prepared.new, prepared.truth[:, -1]
        return pl.concat(
            pl.DataFrame(
                {"model_id": new.model_ids, "truth": truth, "estimate": value, "low": low, "high": high}
            ).with_columns(
                split=pl.lit(fold.split), repeat=fold.repeats[0], n_items=size, method=pl.lit(method), draw=draw
            )
            for size in map(int, spec.n_items)
            for method, draw, (value, low, high) in _scored(prepared.bank, new, size, len(fold.repeats))
        )


def _scored(bank: Bank, new: ResponseMatrix, size: int, n_seeds: int) -> Iterator[tuple[str, int, Scores]]:
    """Yield method, draw, and estimates with their interval."""
    for method, (selector, estimator, interval) in CHOSEN.items():
        for seed in range(n_seeds):  # of clusters and ties
            chosen = select(bank, size, method=selector, rng=seed)
            answers = answers_of(new, new.item_indices(chosen.item_ids))
            found = estimate(bank, answers, selection=chosen, method=estimator, interval=interval)
            yield method, seed, (found.value[:, -1], found.low[:, -1], found.high[:, -1])
    if bank.calibration.n_dims == 1:
        found = replay(bank, new, SessionSpec(budget=Budget(size))).estimates
        yield SESSION, 0, (found.value[:, -1], found.low[:, -1], found.high[:, -1])
        yield "Fluid's rule", 0, _alone(fluid(bank, new.responses, size))
    known, scores = bank.known_scores.value[:, -1], bank.responses.responses
    solved = scores.mean(axis=0)
    mid_range = np.flatnonzero((solved >= MID_RANGE[0]) & (solved <= MID_RANGE[1]))
    for draw in range(N_DRAWS):
        chosen = select(bank, size, method=Stratified("proportional"), rng=draw)
        answers = answers_of(new, new.item_indices(chosen.item_ids))
        given = new.responses[:, new.item_indices(chosen.item_ids)]
        value = given.mean(axis=1)
        reach = t_reach(0.95, size - 1.0) * given.std(axis=1, ddof=1) / np.sqrt(size)
        yield MEAN, draw, (value, value - reach, value + reach)
        found = estimate(bank, answers, selection=chosen, interval="design")
        yield DESIGN, draw, (found.value[:, -1], found.low[:, -1], found.high[:, -1])
        found = estimate(bank, answers, selection=chosen, method="aipw", interval="model-based")
        yield AIPW, draw, _alone(found.value[:, -1])
        items = np.random.default_rng(draw).choice(mid_range, min(size, mid_range.size), replace=False)
        value = new.responses[:, items].mean(axis=1)
        yield "mid-range items, mean", draw, _alone(value)
        slope, start = np.polyfit(scores[:, items].mean(axis=1), known, 1)
        yield "mid-range items, corrected", draw, _alone(start + slope * value)


def _alone(value: FloatArray) -> Scores:
    return value, value, value


def fluid(bank: Bank, answers: FloatArray, n_items: int) -> FloatArray:
    """Score models by the item of most Fisher information at the most probable ability, one item after the other.

    Parameters
    ----------
    bank : Bank
        Of one ability.
    answers : (n_models, n_items)
        To all items; only those that are asked count.
    n_items : int

    Returns
    -------
    (n_models,)
        Mean probability of a right answer over all items at the last ability.
    """
    chance = probability(bank.parameters, ABILITIES[:, None])  # (n_abilities, n_items)
    information = bank.parameters.loadings[:, 0] ** 2 * chance * (1.0 - chance)
    rows = np.arange(answers.shape[0])
    posterior = np.tile(-0.5 * ABILITIES**2, (rows.size, 1))  # (n_models, n_abilities), logarithms
    is_open = np.ones(answers.shape, dtype=bool)
    for _ in range(n_items):
        place: IntArray = posterior.argmax(axis=1)
        item = np.where(is_open, information[place], -1.0).argmax(axis=1)
        is_open[rows, item] = False
        right = answers[rows, item][:, None]
        posterior += right * np.log(chance[:, item].T) + (1.0 - right) * np.log1p(-chance[:, item].T)
    result: FloatArray = chance[posterior.argmax(axis=1)] @ bank.targets.overall_weights
    return result


if __name__ == "__main__":
    main()
