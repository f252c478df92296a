"""Do stages pay? ``ITEMBANK_SHARED=... python -m benchmarks.stages`` (half an hour of CPU).

Splits of the panel: one batch by the default, two stages of as many items, IRT++ (anchor-irt and gp-irt), and what
``stages='auto'`` takes. Errors, coverage and width of 95 % intervals of the overall score of the tested models, and
what the calibration models left out said beforehand. Standard errors resample models.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from benchmarks.panel.table import NAMES
from itembank.errors import ItembankWarning
from itembank.numerics.threads import one_blas_thread
from itembank.planning.stages import compare_stages
from itembank.progress import silent
from itembank.studies.data_sets import load_data
from itembank.studies.fold_runs import PreparedFold, prepare_fold
from itembank.studies.splits import make_folds
from itembank.studies.study_files import load_study

HERE = Path(__file__).parent
REPEATS = {"swebench_verified": 10, "alpacaeval2": 6, "bfcl_v1": 6}
BATCH, STAGES, IRT, TAKEN = "one batch", "two stages", "IRT++", "auto"
DRAWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(REPEATS), default=list(REPEATS))
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/stages"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        pl.DataFrame(list(estimates_of(name))).write_parquet(arguments.output / f"{name}.parquet")
    found = sorted(arguments.output.glob("*.parquet"))
    text = markdown(pl.concat([pl.read_parquet(path) for path in found]))
    (arguments.output / "stages.md").write_text(text, encoding="utf-8")
    print(text)


@one_blas_thread()
def estimates_of(name: str) -> Iterator[dict[str, object]]:
    """Yield the overall score of every tested model of every split, by each way of asking."""
    spec = load_study(HERE / "panel" / f"{name}.toml")
    responses = load_data(spec.data)
    for split in spec.splits:
        for fold in make_folds(split, responses.models, REPEATS[name], spec.seed):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ItembankWarning)
                prepared = prepare_fold(spec, responses, fold)
                for n_items in spec.n_items:
                    print(name, split.name, fold.repeats[0], fold.fold, n_items, flush=True)
                    yield from rows_of(prepared, int(n_items), {"data": name, "split": split.name})


def rows_of(prepared: PreparedFold, n_items: int, where: dict[str, object]) -> Iterator[dict[str, object]]:
    """Ask all tested models, and estimate them."""
    bank, new = prepared.bank, prepared.new
    batch, routing = ib.select(bank, n_items, rng=0), ib.select(bank, n_items, stages=2, rng=0)
    compared = compare_stages(bank, batch, routing, silent)
    takes_stages = compared is not None and compared.stages_pay
    past = [np.nan, np.nan] if compared is None else [compared.batch.error, compared.stages.error]
    anchors = ib.select(bank, n_items, method="anchor-irt", rng=0)
    found = {
        BATCH: in_batch(prepared, batch),
        IRT: in_batch(prepared, anchors, "gp-irt"),
        STAGES: in_stages(prepared, routing),
    }
    found[TAKEN] = found[STAGES if takes_stages else BATCH]
    for kind, rows in found.items():
        for row, one in enumerate(rows):
            model = {"kind": kind, "n_items": n_items, "model_id": new.model_ids[row], "true": prepared.truth[row, -1]}
            yield {**where, **model, **one, "past_batch": past[0], "past_stages": past[1], "takes_stages": takes_stages}


def in_batch(prepared: PreparedFold, selection: ib.Selection, method: str = "auto") -> list[dict[str, float]]:
    """Estimate all models from one selection."""
    answers = prepared.new.take(items=prepared.new.item_indices(selection.item_ids))
    found = ib.estimate(prepared.bank, answers, selection=selection, method=method)
    return [overall(found, row) for row in range(found.n_models)]


def in_stages(prepared: PreparedFold, routing: ib.Selection) -> list[dict[str, float]]:
    """Estimate each model from its own items."""
    result = []
    for row in range(prepared.new.n_models):
        model = prepared.new.take(models=np.array([row]))
        module = ib.selectors.next_stage(prepared.bank, routing, model)
        result.append(overall(ib.estimate(prepared.bank, model, selection=module), 0))
    return result


def overall(estimates: ib.ScoreEstimates, row: int) -> dict[str, float]:
    """Return the estimate of the overall score with its interval."""
    return {name: getattr(estimates, name)[row, -1] for name in ("value", "low", "high")}


def markdown(table: pl.DataFrame) -> str:
    """Return a row for each set, split and number of items."""
    lines = [
        "| data | split | items | IRT++ | one batch | two stages | two stages / one batch | two stages / IRT++ | taken "
        "| coverage: batch, stages | Winkler: batch, stages |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups = ["data", "split", "n_items"]
    rng = np.random.default_rng(0)
    for data, split, n_items in table.select(groups).unique(maintain_order=True).iter_rows():
        cell = table.filter(data=data, split=split, n_items=n_items)
        lines.append(f"| {NAMES[data]} | {split} | {n_items} | {' | '.join(columns(cell, rng))} |")
    return "\n".join(lines)


def columns(cell: pl.DataFrame, rng: np.random.Generator) -> list[str]:
    """Return the numbers of a cell, in points."""
    errors = {kind: errors_by_model(cell.filter(kind=kind)) for kind in (IRT, BATCH, STAGES)}
    quality = [interval_quality(cell.filter(kind=kind)) for kind in (BATCH, STAGES)]
    return [
        *(
            f"{100.0 * total(errors[kind]):.2f} ± {100.0 * spread(rng, errors[kind]):.2f}"
            for kind in (IRT, BATCH, STAGES)
        ),
        ratio(rng, errors[STAGES], errors[BATCH]),
        ratio(rng, errors[STAGES], errors[IRT]),
        f"{cell['takes_stages'].mean():.2f}",
        ", ".join(f"{coverage:.3f}" for coverage, _ in quality),
        ", ".join(f"{winkler:.2f}" for _, winkler in quality),
    ]


def errors_by_model(rows: pl.DataFrame) -> np.ndarray:
    """Sum of absolute errors of each model and their number, (n_models, 2): a model counts as often as it is tested."""
    error = (pl.col("value") - pl.col("true")).abs()
    return rows.group_by("model_id").agg(error.sum(), pl.len()).sort("model_id").drop("model_id").to_numpy()


def total(errors: np.ndarray) -> float:
    return float(errors[:, 0].sum() / errors[:, 1].sum())


def resampled(rng: np.random.Generator, *errors: np.ndarray) -> Iterator[list[float]]:
    """Yield mean errors of models drawn again, the same for all."""
    for _ in range(DRAWS):
        rows = rng.integers(errors[0].shape[0], size=errors[0].shape[0])
        yield [total(one[rows]) for one in errors]


def spread(rng: np.random.Generator, errors: np.ndarray) -> float:
    return float(np.std([one[0] for one in resampled(rng, errors)], ddof=1))


def ratio(rng: np.random.Generator, errors: np.ndarray, reference: np.ndarray) -> str:
    drawn = [ours / theirs for ours, theirs in resampled(rng, errors, reference)]
    return f"{total(errors) / total(reference):.2f} ± {np.std(drawn, ddof=1):.2f}"


def interval_quality(rows: pl.DataFrame) -> tuple[float, float]:
    """Coverage of the intervals, and their Winkler score in points."""
    low, high, true = (rows[name].to_numpy() for name in ("low", "high", "true"))
    missed = np.maximum(low - true, 0.0) + np.maximum(true - high, 0.0)
    return float(np.mean(missed <= 1e-12)), 100.0 * float(np.mean(high - low + 40.0 * missed))


if __name__ == "__main__":
    main()
