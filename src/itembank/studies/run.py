"""The verb `run_study`: every fold once, in parallel, going on where an earlier run stopped."""

from pathlib import Path

import polars as pl

from itembank.data.atomic import replacing_file
from itembank.data.parquet import read_table, write_table
from itembank.data.responses import ResponseMatrix
from itembank.errors import ConvergenceWarning, DataError, DataWarning, ParameterError, shown, warn
from itembank.numerics.threads import check_jobs
from itembank.progress import ProgressCallback, silent
from itembank.studies.data_sets import load_data
from itembank.studies.manifests import begin, make_manifest, read_manifest
from itembank.studies.parallel import run_parts
from itembank.studies.results import COLUMNS, ESTIMATES, PARTS, SUMMARY, StudyResult
from itembank.studies.specs import StudySpec
from itembank.studies.splits import Fold, make_folds
from itembank.studies.summary import summarise
from itembank.studies.units import run_fold


def run_study(
    spec: StudySpec,
    output: str | Path,
    *,
    responses: ResponseMatrix | None = None,
    n_jobs: int = 1,
    progress: ProgressCallback = silent,
    resume: bool = True,
) -> StudyResult:
    """Run a study, and keep everything it finds in a folder.

    Each fold builds one bank from its calibration models; every selector chooses from it once for each size and
    draw; every estimator estimates the tested models from what they answered to those items. Selectors and
    estimators see nothing else of the tested models. Random numbers depend on the seed and the names of split,
    methods and sizes only: not on `n_jobs`, the order of the work, or what else is in the study.

    Parameters
    ----------
    spec : StudySpec
    output : path
        A new folder, or that of the same study: finished folds are not run again.
    responses : ResponseMatrix, optional
        Instead of the data the study names.
    n_jobs : int
        Processes, each with one BLAS thread; -1 for one a core.
    progress : ProgressCallback
    resume : bool
        Go on with a study that stands at `output`; otherwise refuse.

    Returns
    -------
    StudyResult
        Also written to `output`: `estimates.parquet`, `summary.parquet`, `manifest.json`. A `ConvergenceWarning`
        tells of calibrations that did not converge, a `DataWarning` of estimators whose data did not suffice.

    Raises
    ------
    DataError
        When the data cannot be read or split so, or `output` is something else.
    ParameterError
        When the study names no data and none are given, or `n_jobs` is neither -1 nor positive.

    Examples
    --------
    >>> result = run_study(load_study("study.toml"), "study", n_jobs=-1)  # doctest: +SKIP
    >>> result.summary.select("split", "selector", "estimator", "budget", "mae")  # doctest: +SKIP
    """
    check_jobs(n_jobs)
    folder = Path(output)
    matrix = _responses(spec, responses)
    _check_against(spec, matrix)
    folds = [fold for split in spec.splits for fold in make_folds(split, matrix.models, spec.repeats, spec.seed)]
    begin(folder, make_manifest(spec, matrix, folds), resume=resume)
    parts = {folder / PARTS / f"{number:05d}.parquet": fold for number, fold in enumerate(folds)}
    # the longest first, so that no process is left alone with one at the end
    unfinished = [(path, fold) for path, fold in parts.items() if not path.is_file()]
    left = dict(sorted(unfinished, key=lambda one: -len(one[1].repeats)))
    work = [(spec, matrix, fold, path) for path, fold in left.items()]
    run_parts(run_and_write, work, n_jobs=n_jobs, progress=progress, n_done=len(folds) - len(work), word="folds")
    progress("putting results together", 1.0)
    estimates = pl.concat([read_table(path) for path in parts])
    summary = summarise(estimates)
    _write(estimates, folder / ESTIMATES)
    _write(summary, folder / SUMMARY)
    _warn_of_fits(estimates)
    _warn_of_failures(estimates)
    return StudyResult(estimates, summary, read_manifest(folder))


def _responses(spec: StudySpec, given: ResponseMatrix | None) -> ResponseMatrix:
    if given is not None:
        return given
    if spec.data is None:
        raise ParameterError("this study names no data: give run_study the responses, or the spec its data.")
    return load_data(spec.data)


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


def run_and_write(spec: StudySpec, responses: ResponseMatrix, fold: Fold, path: Path) -> None:
    """Run a fold and write its estimates, whole or not at all."""
    _write(run_fold(spec, responses, fold).select(COLUMNS), path)


def _write(table: pl.DataFrame, path: Path) -> None:
    with replacing_file(path) as temporary:
        write_table(table, temporary)


def _warn_of_fits(estimates: pl.DataFrame) -> None:
    """Say how many calibrations stopped early."""
    fits = estimates.select("split", "repeat", "fold", "converged").unique(["split", "repeat", "fold"])
    n_early = int((~fits["converged"]).sum())
    if n_early:
        warn(
            f"{n_early} of {fits.height} calibrations did not converge (column 'converged' of the estimates).",
            ConvergenceWarning,
        )


def _warn_of_failures(estimates: pl.DataFrame) -> None:
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
