"""How adaptive sessions are best read. ``ITEMBANK_SHARED=... python -m benchmarks.session_estimates``.

Models outside the bank go through sessions, one item at a time: V-optimal, the default, or random. After 30 and 100
answers their overall score is read by p-IRT, as all sessions once were ("p-irt"), by each factor model, by the mean of
the three, and as sessions are now ("session"). Prints, by data set and number of items, and for flagged and other
models: mean absolute error in points and its difference to p-IRT's, each with a standard error over models; share of
95 % intervals that held and Winkler's score, of both readings that have intervals.
"""

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from benchmarks.panel.studies import panel_study
from itembank.errors import ItembankWarning
from itembank.estimation.expectations import Expectations
from itembank.numerics.intervals import calibrated_half_widths
from itembank.numerics.threads import one_blas_thread
from itembank.responses.score_names import OVERALL
from itembank.sessions.past_sessions import past_expectations
from itembank.sessions.recorded import Recorded, answer_from_record
from itembank.studies.data_sets import load_data
from itembank.studies.fold_runs import prepare_fold
from itembank.studies.splits import make_folds

REPEATS = {"swebench_verified": 10, "alpacaeval2": 10, "bfcl_v1": 4}
SIZES = (30, 100)
SPLIT = "random"
CRITERIA = ("v-optimal", "random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(REPEATS), default=list(REPEATS))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/session_estimates.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, object]] = []
    for name in arguments.only:
        for row in read_sessions(name, arguments.repeats or REPEATS[name]):
            found.append(row)
            if row["is_last"]:  # of a split: what is done is safe
                pl.DataFrame(found).write_parquet(arguments.output)
    show(pl.read_parquet(arguments.output))


@one_blas_thread()
def read_sessions(name: str, repeats: int) -> Iterator[dict[str, object]]:
    """Yield every reading of every session of each split."""
    spec = panel_study(name)
    responses = load_data(spec.data)
    split = next(one for one in spec.splits if one.name == SPLIT)
    for fold in make_folds(split, responses.models, repeats, spec.seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ItembankWarning)
            prepared = prepare_fold(spec, responses, fold)
            print(name, fold.repeats[0], flush=True)
            where = {"data": name, "repeat": int(fold.repeats[0])}
            rows = [
                {**where, "criterion": criterion, **row}
                for criterion in CRITERIA
                for row in of_split(prepared, ib.SessionSpec(criterion, budget=ib.Budget(max(SIZES))))
            ]
        for number, row in enumerate(rows, 1):
            yield {**row, "is_last": number == len(rows)}


def of_split(prepared, spec: ib.SessionSpec) -> Iterator[dict[str, object]]:
    """Yield every reading of the sessions of one spec."""
    bank, new = prepared.bank, prepared.new
    pool = ib.prepare_sessions(bank, spec)
    past = past_expectations(bank, spec)
    recorded = Recorded.of_responses(bank, new)
    for row in range(new.n_models):
        session = ib.AdaptiveSession(pool, model_id=new.model_ids[row])
        for n_items in SIZES:
            answer_from_record(session, recorded, row, n_answers=n_items)
            for reading, values in readings(session, past, pool.past.truth).items():
                yield {
                    "model": new.model_ids[row],
                    "n_items": n_items,
                    "reading": reading,
                    "true": float(prepared.truth[row, -1]),
                    **values,
                    "is_flagged": bool(session.estimate().scores.typicality.is_flagged[0]),
                }


def readings(session, past, truth) -> dict[str, dict[str, float]]:
    """Overall score by every reading; with its interval where there is one."""
    scores, expected = session.estimate().scores, session.estimate().expected
    column = scores.targets.index(OVERALL)
    means = expected.means[:, 0, column]
    half = half_width_before(session.n_items, past, truth, expected, column)
    without = {"low": float("nan"), "high": float("nan")}
    return {
        "p-irt": {"value": means[0], "low": max(means[0] - half, 0.0), "high": min(means[0] + half, 1.0)},
        "factor": {"value": means[1], **without},
        "factor 0.1": {"value": means[2], **without},
        "mean of three": {"value": means.mean(), **without},
        "session": {name: float(getattr(scores, name)[0, column]) for name in ("value", "low", "high")},
    }


def half_width_before(n: int, past, truth, expected, column: int) -> float:
    """Half-width of p-IRT's interval as it was: past errors over the item model's standard errors."""
    n_answered, found = past
    place = np.interp(np.log(n), np.log(n_answered), np.arange(n_answered.size))
    result, new = 0.0, np.sqrt(expected.variance[:, [column]])
    for checkpoint, share in ((int(place), 1.0 - place % 1.0), (min(int(place) + 1, len(n_answered) - 1), place % 1.0)):
        then = Expectations(*found[:, checkpoint][:, :, [column]])
        errors = then.mean - truth[:, [column]]
        result += share * calibrated_half_widths(errors, np.sqrt(then.variance), new, level=0.95)[0, 0]
    return float(result)


def show(table: pl.DataFrame) -> None:
    """Print the tables."""
    base = table.filter(pl.col("reading") == "p-irt").select(
        "data", "repeat", "criterion", "model", "n_items", before="value"
    )
    joined = table.join(base, on=["data", "repeat", "criterion", "model", "n_items"]).with_columns(
        error=100.0 * (pl.col("value") - pl.col("true")).abs(),
        gain=100.0 * ((pl.col("value") - pl.col("true")).abs() - (pl.col("before") - pl.col("true")).abs()),
        held=(pl.col("low") - 1e-12 <= pl.col("true")) & (pl.col("true") <= pl.col("high") + 1e-12),
        winkler=100.0
        * (
            pl.col("high")
            - pl.col("low")
            + 40.0 * ((pl.col("low") - pl.col("true")).clip(0.0) + (pl.col("true") - pl.col("high")).clip(0.0))
        ),
        half=50.0 * (pl.col("high") - pl.col("low")),
    )
    for extra in ([], ["is_flagged"]):
        groups = ["data", "criterion", "n_items", *extra, "reading"]
        # a model is tested in several splits: its errors are one observation
        by_model = joined.group_by(*groups, "model").agg(
            pl.col("error", "gain", "winkler", "half").mean(), held=pl.col("held").mean(), weight=pl.len()
        )
        print(by_model.group_by(groups, maintain_order=False).agg(**COLUMNS).sort(*groups))


def _mean(name: str) -> pl.Expr:
    return (pl.col(name) * pl.col("weight")).sum() / pl.col("weight").sum()


def _standard_error(name: str) -> pl.Expr:
    spread = pl.col("weight") * (pl.col(name) - _mean(name))
    return (spread**2).sum().sqrt() / pl.col("weight").sum()


COLUMNS = {
    "sessions": pl.col("weight").sum(),
    "mae": _mean("error"),
    "± mae": _standard_error("error"),
    "to p-irt": _mean("gain"),
    "± to p-irt": _standard_error("gain"),
    "coverage": _mean("held"),
    "half-width": _mean("half"),
    "winkler": _mean("winkler"),
    "± winkler": _standard_error("winkler"),
}

if __name__ == "__main__":
    pl.Config.set_tbl_rows(99).set_tbl_cols(20).set_tbl_width_chars(200).set_float_precision(3)
    main()
