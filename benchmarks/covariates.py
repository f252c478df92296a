"""What is it worth to know models beforehand? ``ITEMBANK_SHARED=... python -m benchmarks.covariates`` (an hour).

Random splits: models are estimated from 0, 10, 30 and 100 items, with what is known of them (date, size, family,
organisation) and without, by a bank of the others. The columns were fixed before any error was seen.
"""

import argparse
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.errors import ItembankWarning
from itembank.estimation.covariates import unanswered

COVARIATES = {
    "swebench_verified": ("submission_date", "org"),
    "alpacaeval2": ("date_added_to_repo", "family", "size_b"),
    "mmlu-pro": ("family", "size_b", "instruct"),
    "openllm1_core": ("first_seen_in_scrape", "family", "org", "size_b", "merged"),
}
N_PAST = {"swebench_verified": 75, "alpacaeval2": 42, "mmlu-pro": 25, "openllm1_core": 100}
SIZES = (0, 10, 30, 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(COVARIATES), default=list(COVARIATES))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/covariates.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ItembankWarning)
    rows = []
    for name in arguments.only:
        responses = loaded(name)
        for repeat in range(arguments.repeats):
            rows += tried(name, responses, repeat)
            print(name, repeat, flush=True)
            pl.DataFrame(rows).write_parquet(arguments.output)
    show(pl.DataFrame(rows))


def loaded(name: str) -> ib.ResponseMatrix:
    """Read responses with what is known of the models; of MMLU-Pro the items that all models answered."""
    folder = Path(os.environ["ITEMBANK_SHARED"]) / "data" / name
    matrix = ib.read_responses(folder / "responses.parquet")
    about = pl.read_csv(folder / "models.csv", infer_schema_length=None).with_columns(
        pl.col("model_id").cast(pl.String)
    )
    if "tags" in about.columns:
        found = [re.search(r"Org: ([^;]+)", text or "") for text in about["tags"]]
        about = about.with_columns(pl.Series("org", [one and one.group(1).strip() for one in found], dtype=pl.String))
    models = matrix.models.select("model_id").join(
        about.select("model_id", *COVARIATES[name]), on="model_id", how="left", maintain_order="left"
    )
    complete = np.flatnonzero(~np.isnan(matrix.responses).any(axis=0))
    if complete.size > 2000:  # a fifth, so that it ends within the hour
        complete = complete[::5]
    kept = matrix.take(items=complete)
    return ib.ResponseMatrix.create(kept.responses, models=models, items=kept.items)


def tried(name: str, responses: ib.ResponseMatrix, repeat: int) -> Iterator[dict[str, object]]:
    """Calibrate on some models and estimate the others."""
    order = np.random.default_rng([7, repeat]).permutation(responses.n_models)
    past, new = np.sort(order[: N_PAST[name]]), np.sort(order[N_PAST[name] :][:60])
    bank, others = ib.build_bank(responses.take(models=past)), responses.take(models=new)
    truth = bank.targets.with_overall(bank.targets.scenario_means(others.responses))[:, -1]
    for n_items in SIZES:
        known = {"data": name, "repeat": repeat, "n_items": n_items}
        if n_items == 0:
            yield from rows(
                ib.estimate(bank, unanswered(bank, others.models), covariates=COVARIATES[name]), truth, known
            )
            continue
        selection = ib.select(bank, n_items, rng=0)
        answers = others.take(items=others.item_indices(selection.item_ids))
        for covariates in ((), COVARIATES[name]):
            found = ib.estimate(bank, answers, selection=selection, covariates=covariates)
            yield from rows(found, truth, known)


def rows(found: ib.ScoreEstimates, truth: np.ndarray, known: dict[str, object]) -> Iterator[dict[str, object]]:
    kind = "with" if "nowing" in found.explanation or "alone" in found.explanation else "without"
    for row, true in enumerate(truth):
        low, high = found.low[row, -1], found.high[row, -1]
        yield {
            **known,
            "kind": kind,
            "counts": "does not count" not in found.explanation,
            "error": 100 * abs(found.value[row, -1] - true),
            "half_width": 50 * (high - low),
            "is_inside": bool(low - 1e-9 <= true <= high + 1e-9),
        }


def show(table: pl.DataFrame) -> None:
    """Print mean errors with and without, the standard error of their difference over splits, and coverage."""
    keys = ["data", "n_items"]
    values = [pl.col(name).mean() for name in ("error", "half_width", "is_inside", "counts")]
    each = table.group_by([*keys, "repeat", "kind"]).agg(values)
    pair = each.filter(kind="with").join(each.filter(kind="without"), on=[*keys, "repeat"], how="left", suffix="_0")
    found = pair.group_by(keys).agg(
        pl.col("error_0", "error").mean(),
        (pl.col("error") - pl.col("error_0")).std().truediv(pl.len().sqrt()).alias("se"),
        pl.col("half_width_0", "half_width", "is_inside_0", "is_inside", "counts").mean(),
    )
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=2):
        print(found.sort(keys))


if __name__ == "__main__":
    main()
