"""The verb `run_prediction`: every partition once, in parallel, going on where an earlier run stopped."""

from pathlib import Path

import numpy as np
import polars as pl

from itembank.data.atomic import replacing_file, replacing_folder
from itembank.data.costs import CostUnit, response_costs
from itembank.data.parquet import write_table
from itembank.data.responses import ResponseMatrix
from itembank.errors import ConvergenceWarning, DataError, ParameterError, shown, warn
from itembank.numerics.threads import check_jobs
from itembank.progress import ProgressCallback, silent
from itembank.studies.data_sets import load_data
from itembank.studies.manifests import PREDICTION, begin, manifest_of
from itembank.studies.parallel import run_parts
from itembank.studies.prediction.costs import costs_to_reach, errors_at_cost
from itembank.studies.prediction.partitions import Partition, Tasks, find_tasks, make_partition
from itembank.studies.prediction.results import AT_COST, COSTS, CURVES, TASKS, PredictionResult, part_path, scan
from itembank.studies.prediction.specs import PredictionSpec
from itembank.studies.prediction.summary import Errors, summarise_curves
from itembank.studies.prediction.units import PREDICTIONS, RUNS, SECONDS, run_partition


def run_prediction(
    spec: PredictionSpec,
    output: str | Path,
    *,
    responses: ResponseMatrix | None = None,
    n_jobs: int = 1,
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
    output : path
        A new folder, or that of the same study: finished partitions are not run again.
    responses : ResponseMatrix, optional
        Instead of the data the study names. Models without any response are left out.
    n_jobs : int
        Processes, each with one BLAS thread; -1 for one a core.
    progress : ProgressCallback
    resume : bool
        Go on with a study that stands at `output`; otherwise refuse.

    Returns
    -------
    PredictionResult
        Also written to `output`. A `ConvergenceWarning` tells of calibrations that did not converge.

    Raises
    ------
    DataError
        When the data cannot be read or divided so, responses are neither 0 nor 1, the cost is not recorded, or
        `output` is something else.
    ParameterError
        When the study names no data and none are given, or `n_jobs` is neither -1 nor positive.
    """
    check_jobs(n_jobs)
    folder = Path(output)
    matrix = _responses(spec, responses)
    tasks = find_tasks(spec, matrix)
    partitions = [make_partition(spec, matrix, tasks, number) for number in range(spec.n_partitions)]
    divisions = [tasks.index.tobytes()] + [_division(one) for one in partitions]
    manifest = manifest_of(spec.to_dict(), matrix, divisions, seed=spec.seed, kind=PREDICTION)
    begin(folder, {**manifest, "n_folds": len(partitions)}, resume=resume)
    paths = [part_path(folder, number) for number in range(len(partitions))]
    work = [
        (spec, matrix, tasks, partition, path)
        for partition, path in zip(partitions, paths, strict=True)
        if not path.is_dir()
    ]
    n_done = len(partitions) - len(work)
    run_parts(run_and_write, work, n_jobs=n_jobs, progress=progress, n_done=n_done, word="partitions")
    progress("putting results together", 1.0)
    errors = Errors.of(scan(folder, PREDICTIONS), scan(folder, RUNS))
    for name, table in (
        (TASKS, tasks.table()),
        (CURVES, summarise_curves(errors)),
        (COSTS, costs_to_reach(errors, spec)),
        (AT_COST, errors_at_cost(errors, spec)),
    ):
        with replacing_file(folder / f"{name}.parquet") as temporary:
            write_table(table, temporary)
    _warn_of_fits(scan(folder, SECONDS))
    return PredictionResult.load(folder)


def _warn_of_fits(seconds: pl.LazyFrame) -> None:
    """Say how many calibrations stopped early."""
    fits = seconds.filter(pl.col("work") == "calibrate").select("name", "converged").collect()
    n_early = int((~fits["converged"]).sum())
    if n_early:
        names = fits.filter(~pl.col("converged"))["name"].unique(maintain_order=True).to_list()
        warn(
            f"{n_early} of {fits.height} calibrations did not converge, of {shown(names)} (column 'converged' of the "
            "seconds).",
            ConvergenceWarning,
        )


def run_and_write(
    spec: PredictionSpec, responses: ResponseMatrix, tasks: Tasks, partition: Partition, path: Path
) -> None:
    """Run a partition and write its tables, all or none."""
    tables = run_partition(spec, responses, tasks, partition)
    with replacing_folder(path) as temporary:
        for name, table in tables.items():
            write_table(table, temporary / f"{name}.parquet")


def _responses(spec: PredictionSpec, given: ResponseMatrix | None) -> ResponseMatrix:
    if given is None and spec.data is None:
        raise ParameterError("this study names no data: give run_prediction the responses, or the spec its data.")
    responses = load_data(spec.data) if given is None and spec.data is not None else given
    if responses is None or not responses.is_binary:
        raise DataError("a prediction study needs responses of 0 and 1 only. Make them binary first.")
    observed = responses.observed
    if not observed.any(axis=1).all():  # a filter of items left some models nothing
        responses = responses.take(models=np.flatnonzero(observed.any(axis=1)))
    if spec.cost:
        response_costs(responses, CostUnit(spec.cost, spec.input_weight))  # before the long work
    return responses


def _division(partition: Partition) -> bytes:
    arrays = (partition.train, partition.test, partition.is_held_out, partition.task_order)
    return b"/".join(array.tobytes() for array in arrays)
