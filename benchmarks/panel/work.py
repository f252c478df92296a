"""The work of a study of the panel, fold by fold: every pair of methods, and the default in two stages."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.planning.auto import compare_stages
from itembank.planning.select import next_stage, select
from itembank.progress import silent
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.studies.comparison_study import PreparedFold, fold_estimates, prepare_fold
from itembank.studies.splits import Fold, folds_of
from itembank.studies.study_specs import StudySpec

DEFAULT = ("auto", "auto")
STAGES = ("two stages", "auto")
BY_TRIAL = ("stages by trial", "auto")
"""Two stages where the calibration models left out say so, one batch elsewhere: what ``stages='auto'`` does."""
ONE_ESTIMATE = ("study", "split", "repeat", "fold", "draw", "budget", "target", "model_id")


def parts(name: str, spec: StudySpec, responses: ResponseMatrix) -> dict[str, Callable[[], pl.DataFrame]]:
    """Give the work of a study by name, a part for each fold; each returns a table of estimates."""
    folds = folds_of(spec.splits, responses, spec.repeats, spec.seed)
    return {
        f"{fold.split}-{fold.repeats[0]}to{fold.repeats[-1]}-{fold.fold}": partial(
            estimates_of, name, spec, responses, fold
        )
        for fold in folds
    }


def estimates_of(name: str, spec: StudySpec, responses: ResponseMatrix, fold: Fold) -> pl.DataFrame:
    """Return the estimates of all methods in a fold.

    The default in two stages has rows as if it were a selector of the study, for the overall score, and
    `takes_stages` says there whether ``stages='auto'`` would have taken them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        prepared = prepare_fold(spec, responses, fold)
        found = fold_estimates(spec, prepared, fold)
        in_stages = [_in_stages(prepared, int(n_items)) for n_items in spec.n_items]
    stages = pl.concat(in_stages).join(pl.DataFrame({"repeat": fold.repeats}), how="cross")
    place = {"split": fold.split, "fold": fold.fold, "draw": 0, "target": OVERALL, "failure": ""}
    place |= dict(zip(("selector", "estimator"), STAGES, strict=True)) | {"n_calibration": prepared.bank.n_models}
    stages = stages.with_columns(pl.lit(value).alias(key) for key, value in place.items())
    return pl.concat([found, stages], how="diagonal_relaxed").with_columns(study=pl.lit(name))


def _in_stages(prepared: PreparedFold, n_items: int) -> pl.DataFrame:
    """Ask every tested model its own items in a second stage, and say whether the bank's own trials take stages."""
    bank, new = prepared.bank, prepared.new
    routing = select(bank, n_items, stages=2, rng=0)
    compared = compare_stages(bank, select(bank, n_items, rng=0), routing, silent)
    takes_stages = compared is not None and compared.stages_pay
    rows = []
    for row in range(new.n_models):
        model = new.take(models=np.array([row]))
        found = estimate(bank, model, selection=next_stage(bank, routing, model))
        rows.append(
            {
                "budget": float(n_items),
                "n_items": n_items,
                "model_id": model.model_ids[0],
                "truth": float(prepared.truth[row, -1]),
                "estimate": float(found.value[0, -1]),
                "low": float(found.low[0, -1]),
                "high": float(found.high[0, -1]),
                "misfit": float(found.typicality.misfit[0]),
                "typicality": float(found.typicality.typicality[0]),
                "n_used": int(found.n_items[0, -1]),
                "takes_stages": takes_stages,
            }
        )
    return pl.DataFrame(rows)


def of_method(estimates: pl.DataFrame, method: tuple[str, str]) -> pl.DataFrame:
    """Return the overall scores by a selector and an estimator."""
    return estimates.filter(selector=method[0], estimator=method[1], target=OVERALL)


def with_stages_by_trial(estimates: pl.DataFrame) -> pl.DataFrame:
    """Add the rows of `BY_TRIAL`: those of two stages where these were taken, else the default's."""
    stages = of_method(estimates, STAGES)
    in_batch = stages.filter(~pl.col("takes_stages")).select(ONE_ESTIMATE)
    taken = [stages.filter("takes_stages"), of_method(estimates, DEFAULT).join(in_batch, on=ONE_ESTIMATE, how="semi")]
    selector, estimator = BY_TRIAL
    return pl.concat(
        [estimates, *(one.with_columns(selector=pl.lit(selector), estimator=pl.lit(estimator)) for one in taken)]
    )
