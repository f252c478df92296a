"""The verbs `run_study` and `run_prediction`."""

from pathlib import Path

import polars as pl

from itembank.errors import ConvergenceWarning, ParameterError, shown, warn
from itembank.numerics.parallel import check_jobs
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank_studies.comparison_study import comparison_study, warn_of_failures
from itembank_studies.engine import run_in_folder
from itembank_studies.prediction.prediction_spec import PredictionSpec
from itembank_studies.prediction.study import prediction_study
from itembank_studies.results import PredictionResult, StudyResult
from itembank_studies.study_files import load_data
from itembank_studies.study_specs import DataSpec, StudySpec


def run_study(
    spec: StudySpec,
    output: str | Path,
    *,
    responses: ResponseMatrix | None = None,
    n_jobs: int | None = None,
    progress: ProgressCallback = silent,
    resume: bool = True,
) -> StudyResult:
    """Run a study, and keep everything it finds in a folder.

    Each fold builds one bank from its past models; every selector chooses from it once for each size and
    draw; every estimator estimates the new models from what they answered to those items. Selectors and
    estimators see nothing else of the new models. Random numbers depend on the seed and the names of split,
    methods and sizes only: not on `n_jobs`, the order of the work, or what else is in the study.

    Parameters
    ----------
    spec : StudySpec
    output : path
        A new folder, or that of the same study: finished folds are not run again.
    responses : ResponseMatrix, optional
        Instead of the data the study names.
    n_jobs : int, optional
        Processes, each with one BLAS thread; -1 for one a core. Without it, what the surrounding
        ``joblib.parallel_config`` says, such as ``"dask"`` or ``"ray"``; 1 otherwise.
    progress : ProgressCallback
    resume : bool
        Go on with the study at `output`; otherwise refuse.

    Returns
    -------
    StudyResult
        Also written to `output`: `estimates.parquet`, `summary.parquet`, `manifest.json`. A `ConvergenceWarning`
        names calibrations that did not converge, a `DataWarning` of estimators whose data did not suffice.

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
    study = comparison_study(spec, _responses(spec.data, responses, "run_study"))
    run_in_folder(study, Path(output), n_jobs=n_jobs, progress=progress, resume=resume)
    result = StudyResult.load(output)
    fits = result.estimates.select("split", "repeat", "fold", "converged").unique(["split", "repeat", "fold"])
    _warn_of_fits(fits["converged"], " (column 'converged' of the estimates)")
    warn_of_failures(result.estimates)
    return result


def run_prediction(
    spec: PredictionSpec,
    output: str | Path,
    *,
    responses: ResponseMatrix | None = None,
    n_jobs: int | None = None,
    progress: ProgressCallback = silent,
    resume: bool = True,
) -> PredictionResult:
    """Run a prediction study, and keep everything it finds in a folder.

    In each partition every item model is calibrated once, on the training models and all items. Then, for each
    number of calibration tasks, every assessor chooses among the items of these tasks that are not held out, and
    predicts each test model's mean on the held-out items of every task from its answers. Assessors see nothing else
    of the test models. Random numbers depend on the seed and on what they are for, not on `n_jobs`, the order of the
    work, or what else is in the study.

    Parameters
    ----------
    spec : PredictionSpec
    output, n_jobs, progress, resume
        As for `run_study`.
    responses : ResponseMatrix, optional
        Instead of the data the study names. Models without any response are left out.

    Returns
    -------
    PredictionResult
        Also written to `output`. A `ConvergenceWarning` names calibrations that did not converge.

    Raises
    ------
    DataError
        When the data cannot be read or divided so, responses are neither 0 nor 1, the cost is not recorded, or
        `output` is something else.
    ParameterError
        When the study names no data and none are given, or `n_jobs` is neither -1 nor positive.
    """
    check_jobs(n_jobs)
    study = prediction_study(spec, _responses(spec.data, responses, "run_prediction"))
    run_in_folder(study, Path(output), n_jobs=n_jobs, progress=progress, resume=resume)
    result = PredictionResult.load(output)
    fits = result.seconds.filter(pl.col("work") == "calibrate").select("name", "converged").collect()
    names = fits.filter(~pl.col("converged"))["name"].unique(maintain_order=True).to_list()
    _warn_of_fits(fits["converged"], f", of {shown(names)} (column 'converged' of the seconds)")
    return result


def _responses(data: DataSpec | None, given: ResponseMatrix | None, verb: str) -> ResponseMatrix:
    if given is not None:
        return given
    if data is None:
        raise ParameterError(f"this study names no data: give {verb} the responses, or the spec its data.")
    return load_data(data)


def _warn_of_fits(converged: pl.Series, where: str) -> None:
    n_early = int((~converged).sum())
    if n_early:
        warn(f"{n_early} of {converged.len()} calibrations did not converge{where}.", ConvergenceWarning)
