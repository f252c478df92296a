"""The comparison of methods as a study that the engine runs: one unit a fold."""

from functools import partial
from pathlib import Path

import polars as pl

from itembank.errors import DataError, DataWarning, ParameterError, shown, warn
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import sibling_groups
from itembank.studies.engine import Study, Tables
from itembank.studies.fold_runs import run_fold
from itembank.studies.folders import COMPARISON, ESTIMATES, SUMMARY
from itembank.studies.manifests import StudyManifest
from itembank.studies.splits import Fold, make_folds
from itembank.studies.study_specs import StudySpec
from itembank.studies.summary import summarise


def comparison_study(spec: StudySpec, responses: ResponseMatrix) -> Study[Fold]:
    """Return the study of these responses, ready to run.

    Raises
    ------
    DataError, ParameterError
        When the responses cannot be split so, or have not the sizes or the costs that it needs.
    """
    _check_against(spec, responses)
    siblings = sibling_groups(responses)
    folds = [
        fold
        for split in spec.splits
        for fold in make_folds(split, responses.models, spec.repeats, spec.seed, siblings=siblings)
    ]
    manifest = StudyManifest.of(
        COMPARISON.name,
        spec.to_dict(),
        responses,
        division=[_division(fold) for fold in folds],
        seed=spec.seed,
        n_folds=len(folds),
    )
    # the longest first, so that no process is left alone with one at the end
    units = dict(sorted(enumerate(folds), key=lambda numbered: -len(numbered[1].repeats)))
    return Study(COMPARISON, manifest, units, partial(_run, spec, responses), _summaries)


def _check_against(spec: StudySpec, responses: ResponseMatrix) -> None:
    """Refuse sizes and a unit of cost that the responses do not have, before the long work."""
    n_scenarios = responses.items["scenario"].n_unique()
    outside = [n for n in spec.n_items if not n_scenarios <= n <= responses.n_items]
    if outside:
        raise ParameterError(
            f"n_items must be from {n_scenarios} (one for each scenario) to {responses.n_items} (all), "
            f"got {shown(outside)}."
        )
    if spec.cost_unit and spec.cost_unit not in responses.costs:
        raise DataError(
            f"a study of cost {spec.cost_unit!r} needs that column with the responses, which have "
            f"{shown(sorted(responses.costs)) or 'no costs'}."
        )


def _division(fold: Fold) -> bytes:
    place = f"{fold.split}/{fold.repeats}/{fold.fold}/".encode()
    return place + fold.train.tobytes() + b"/" + fold.test.tobytes()


def _run(spec: StudySpec, responses: ResponseMatrix, fold: Fold) -> Tables:
    return {ESTIMATES: run_fold(spec, responses, fold)}


def _summaries(folder: Path) -> Tables:
    estimates = COMPARISON.scan(folder, ESTIMATES).collect()
    return {ESTIMATES: estimates, SUMMARY: summarise(estimates)}


def warn_of_failures(estimates: pl.DataFrame) -> None:
    """Say which estimators gave nothing, and the first reason of each."""
    failed = estimates.filter(pl.col("failure") != "")
    if failed.height:
        reasons = failed.group_by("estimator", maintain_order=True).agg(pl.col("failure").first())
        listed = "; ".join(f"{estimator}: {reason}" for estimator, reason in reasons.rows())
        warn(
            f"{failed.height} of {estimates.height} estimates are missing (column 'failure' of the estimates): "
            f"{listed}",
            DataWarning,
        )
