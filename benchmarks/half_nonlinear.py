"""Should V-optimal items suit single abilities, too? ``ITEMBANK_SHARED=... python -m benchmarks.half_nonlinear``.

Leaderboards with few past models (a quarter of an hour): `VOptimal()` against `VOptimal(n_abilities=8)`. Errors of
`auto` estimates of the tested models' overall scores, and of calibration models left out, by which `select` with 'auto'
decides. The number of abilities was fixed before any error was seen, and the splits of the second seed were made after
those of the first had been looked at. Standard errors resample models.
"""

import argparse
import dataclasses
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from benchmarks.panel.studies import panel_study
from benchmarks.panel.table import NAMES
from benchmarks.resampling import Resampled, mean_error
from itembank.errors import ItembankWarning
from itembank.numerics.threads import one_blas_thread
from itembank.planning.auto import CANDIDATES, Tried, best_of, errors_of
from itembank.responses.responses import ResponseMatrix
from itembank.selection.recipes import Recipe
from itembank.studies.data_sets import load_data
from itembank.studies.fold_runs import PreparedFold, prepare_fold
from itembank.studies.split_specs import ByDate, ByGroup, NamedGroup, RandomShare
from itembank.studies.splits import make_folds
from itembank.studies.study_specs import StudySpec

REPEATS = {0: 6, 1: 10}
"""Random splits by seed."""
SETS = ("swebench_verified", "alpacaeval2", "bfcl_v1", "mmlu_pro")
LINEAR, HALF, GATED_OLD, GATED = "linear", "half", "auto as it was", "auto with it"
SPECS = dict(zip((LINEAR, "latent", "stratified", HALF), CANDIDATES, strict=True))
GATES = {GATED_OLD: list(SPECS)[:3], GATED: list(SPECS)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--seeds", nargs="+", type=int, choices=list(REPEATS), default=list(REPEATS))
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/half_nonlinear"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ItembankWarning)
    for name in arguments.only:
        rows: list[dict[str, object]] = []
        for one in estimates_of(name, arguments.seeds):
            rows += one
            pl.DataFrame(rows).write_parquet(arguments.output / f"{name}.parquet")
    found = sorted(arguments.output.glob("*.parquet"))
    text = markdown(pl.concat([pl.read_parquet(path) for path in found]))
    (arguments.output / "half_nonlinear.md").write_text(text, encoding="utf-8")
    print(text)


@one_blas_thread()
def estimates_of(name: str, seeds: list[int]) -> Iterator[list[dict[str, object]]]:
    """Yield the rows of each split and number of items."""
    spec, responses = study_of(name)
    for seed, split in itertools.product(seeds, spec.splits):
        if seed != seeds[0] and isinstance(split, ByDate | NamedGroup):
            continue  # the one split of its kind was made already
        for fold in make_folds(split, responses.models, REPEATS[seed], seed):
            prepared = prepare_fold(spec, responses, fold)
            for n_items in spec.n_items:
                print(name, split.name, seed, fold.repeats[0], n_items, flush=True)
                where = {"data": name, "split": split.name, "fold": f"{seed}.{fold.repeats[0]}"}
                yield [{**where, **row} for row in rows_of(prepared, int(n_items))]


def study_of(name: str) -> tuple[StudySpec, ResponseMatrix]:
    """Return the study of the panel and its responses; of MMLU-Pro a fifth of the items, and a quarter of models."""
    spec = panel_study(name)
    responses = load_data(spec.data)
    if name == "mmlu_pro":
        splits = (RandomShare(), ByGroup("family", test_share=0.25, name="family"))
        spec = dataclasses.replace(spec, splits=splits)
        responses = responses.take(items=np.arange(0, responses.n_items, 5))
    return spec, responses


def rows_of(prepared: PreparedFold, n_items: int) -> Iterator[dict[str, object]]:
    """Yield errors of tested models, and of models left out, for each kind of items."""
    bank = prepared.bank
    tried = {name: left_out(bank, spec, n_items) for name, spec in SPECS.items()}
    kinds = {gate: best_among(tried, names) for gate, names in GATES.items()}
    tested = {name: errors(prepared, SPECS[name], n_items) for name in {LINEAR, HALF, *kinds.values()}}
    for kind, taken in {LINEAR: LINEAR, HALF: HALF, **kinds}.items():
        known = {"n_items": n_items, "kind": kind, "taken": taken, "n_past": bank.n_models}
        for place, ids, found in (
            ("tested", prepared.new.model_ids, tested[taken]),
            ("left out", bank.responses.model_ids, (tried[taken].errors, np.full(bank.n_models, np.nan))),
        ):
            for model_id, error, is_inside in zip(ids, *found, strict=True):
                yield {**known, "place": place, "model_id": model_id, "value": error, "true": 0.0, "inside": is_inside}


def left_out(bank: ib.Bank, spec: object, n_items: int) -> Tried:
    recipe = Recipe(spec, n_items, per_scenario=False, excluded=())
    return Tried(recipe, errors_of(bank, recipe, 0))


def best_among(tried: dict[str, Tried], names: list[str]) -> str:
    best = best_of([tried[name] for name in names])
    return next(name for name in names if tried[name] is best)


def errors(prepared: PreparedFold, spec: object, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Absolute errors of the tested models' overall scores, and whether intervals hold these, each (n_models,)."""
    selection = ib.select(prepared.bank, n_items, method=spec, rng=0)
    answers = prepared.new.take(items=prepared.new.item_indices(selection.item_ids))
    found = ib.estimate(prepared.bank, answers, selection=selection)
    value, low, high, true = (one[:, -1] for one in (found.value, found.low, found.high, prepared.truth))
    return np.abs(value - true), ((low - 1e-9 <= true) & (true <= high + 1e-9)).astype(float)


def markdown(table: pl.DataFrame) -> str:
    """Return a row for each set, split and number of items, and the geometric means of ratios on random splits."""
    lines = [
        "| data | split | past models | items | splits | half / linear, tested | half / linear, left out "
        "| auto takes half | auto as it was | auto with it | ratio | coverage |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    keys = ["n_items", "split", "data"]
    ratios = {}
    for n_items, split, data in (
        table.select(keys).unique().sort("n_items", pl.col("split") != "random", "data").iter_rows()
    ):
        cell = table.filter(data=data, split=split, n_items=n_items)
        tested, past = (cell.filter(place=place) for place in ("tested", "left out"))
        pairs = ((tested, LINEAR, HALF), (past, LINEAR, HALF), (tested, GATED_OLD, GATED))
        found = [log_ratio(*pair) for pair in pairs]
        if split == "random":
            ratios.setdefault(n_items, []).append(found)
        n_splits, said = cell["fold"].n_unique(), [as_ratio(*one) for one in found]
        n_taken = (cell.filter(kind=GATED).unique("fold")["taken"] == HALF).sum()
        auto = [f"{error_of(tested, kind).value:.2f}" for kind in (GATED_OLD, GATED)]
        coverage = ", ".join(f"{tested.filter(kind=kind)['inside'].mean():.3f}" for kind in (GATED_OLD, GATED))
        columns = [NAMES[data], split, f"{cell['n_past'].mean():.0f}", n_items, n_splits, *said[:2], n_taken]
        lines.append(f"| {' | '.join(map(str, [*columns, *auto, said[2], coverage]))} |")
    for n_items, found in ratios.items():
        logs, errors = np.moveaxis(np.array(found), -1, 0)  # (n_sets, 3) each
        spread = np.sqrt(np.sum(errors**2, axis=0)) / len(found)
        said = [as_ratio(*one) for one in zip(logs.mean(axis=0), spread, strict=True)]
        lines.append(f"| geometric mean | random | | {n_items} | | {said[0]} | {said[1]} | | | | {said[2]} | |")
    return "\n".join(lines)


def log_ratio(rows: pl.DataFrame, reference: str, other: str) -> tuple[float, float]:
    """Logarithm of the ratio of two kinds' mean errors, and its standard error."""
    ratio = error_of(rows, other) / error_of(rows, reference)
    return float(np.log(ratio.value)), float(np.std(np.log(ratio.draws), ddof=1))


def error_of(rows: pl.DataFrame, kind: str) -> Resampled:
    """Mean absolute error of a kind, in points."""
    return mean_error(rows.filter(kind=kind).drop_nans("value").rename({"value": "estimate", "true": "truth"}))


def as_ratio(log: float, error: float) -> str:
    return f"{np.exp(log):.2f} ± {np.exp(log) * error:.2f}"


if __name__ == "__main__":
    main()
