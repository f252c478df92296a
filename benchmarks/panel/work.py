"""The work of a study of the panel, fold by fold: every pair of methods, and the default in stages and sessions."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import polars as pl

from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates, joined
from itembank.planning.select import next_stage, select
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.sessions.limits import Budget
from itembank.sessions.session_spec import SessionSpec
from itembank_studies.comparison_study import PreparedFold, fold_estimates, prepare_fold
from itembank_studies.replays import replay
from itembank_studies.splits import Fold, folds_of
from itembank_studies.study_specs import StudySpec

DEFAULT = ("v-optimal", "auto")
STAGES = ("two stages", "auto")
SESSION = ("session", "auto")


def parts(
    name: str, spec: StudySpec, responses: ResponseMatrix, *, with_sessions: bool = False
) -> dict[str, Callable[[], pl.DataFrame]]:
    """Give the work of a study by name, a part for each fold; each returns a table of estimates."""
    folds = folds_of(spec.splits, responses, spec.repeats, spec.seed)
    return {
        f"{fold.split}-{fold.repeats[0]}to{fold.repeats[-1]}-{fold.fold}": partial(
            estimates_of, name, spec, responses, fold, with_sessions=with_sessions
        )
        for fold in folds
    }


def estimates_of(
    name: str, spec: StudySpec, responses: ResponseMatrix, fold: Fold, *, with_sessions: bool = False
) -> pl.DataFrame:
    """Return the estimates of all methods in a fold.

    The default in two stages, and in sessions, has rows as if it were a selector of the study, for the overall score.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        prepared = prepare_fold(spec, responses, fold)
        found = [fold_estimates(spec, prepared, fold)]
        for size in map(int, spec.n_items):
            found.append(_of(STAGES, prepared, size, _in_stages(prepared, size)))
            if with_sessions:
                replayed = replay(prepared.bank, prepared.new, SessionSpec(budget=Budget(size)))
                found.append(_of(SESSION, prepared, size, [replayed.estimates]))
    place = {"split": fold.split, "fold": fold.fold, "draw": 0, "target": OVERALL, "failure": ""}
    repeats = pl.DataFrame({"repeat": fold.repeats})
    asked = pl.concat(found[1:], how="diagonal").with_columns(pl.lit(value).alias(key) for key, value in place.items())
    return pl.concat([found[0], asked.join(repeats, how="cross")], how="diagonal_relaxed").with_columns(
        study=pl.lit(name)
    )


def _of(method: tuple[str, str], prepared: PreparedFold, n_items: int, found: Sequence[ScoreEstimates]) -> pl.DataFrame:
    """Return the overall scores of all tested models, estimated together or one by one."""
    typicality = joined([one.typicality for one in found])
    numbers = {
        name: np.concatenate([getattr(one, name)[:, -1] for one in found]) for name in ("low", "high", "n_items")
    }
    selector, estimator = method
    return pl.DataFrame(
        {
            "model_id": prepared.new.model_ids,
            "truth": prepared.truth[:, -1],
            "estimate": np.concatenate([one.value[:, -1] for one in found]),
            "low": numbers["low"],
            "high": numbers["high"],
            "misfit": typicality.misfit,
            "typicality": typicality.typicality,
            "n_used": numbers["n_items"],
        }
    ).with_columns(
        budget=pl.lit(float(n_items)),
        n_items=n_items,
        n_calibration=prepared.bank.n_models,
        selector=pl.lit(selector),
        estimator=pl.lit(estimator),
    )


def _in_stages(prepared: PreparedFold, n_items: int) -> list[ScoreEstimates]:
    """Ask every tested model its own items in a second stage."""
    bank, new = prepared.bank, prepared.new
    routing = select(bank, n_items, stages=2, rng=0)
    models = [new.take(models=np.array([row])) for row in range(new.n_models)]
    return [estimate(bank, model, selection=next_stage(bank, routing, model)) for model in models]


def of_method(estimates: pl.DataFrame, method: tuple[str, str]) -> pl.DataFrame:
    """Return the overall scores by a selector and an estimator."""
    return estimates.filter(selector=method[0], estimator=method[1], target=OVERALL)
