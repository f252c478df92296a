"""The prediction of tasks as a study that the engine runs: one unit a partition."""

from functools import partial
from pathlib import Path

import numpy as np

from itembank.bank.costs import CostUnit, response_costs
from itembank.responses.responses import ResponseMatrix
from itembank.studies.engine import Study, Tables
from itembank.studies.folders import AT_COST, COSTS, CURVES, PREDICTION, PREDICTIONS, RUNS, TASKS
from itembank.studies.manifests import StudyManifest
from itembank.studies.prediction.costs import costs_to_reach, errors_at_cost
from itembank.studies.prediction.error_curves import sum_errors, summarise_curves
from itembank.studies.prediction.partition_runs import run_partition
from itembank.studies.prediction.partitions import Partition, Tasks, find_tasks, make_partition
from itembank.studies.prediction.prediction_spec import PredictionSpec


def prediction_study(spec: PredictionSpec, responses: ResponseMatrix) -> Study[Partition]:
    """Return the study of these responses, ready to run. Models without any response are left out.

    Raises
    ------
    DataError
        When the responses cannot be divided so, or have not the cost that it needs.
    """
    responses = _usable(spec, responses)
    tasks = find_tasks(spec, responses)
    partitions = [make_partition(spec, responses, tasks, number) for number in range(spec.n_partitions)]
    manifest = StudyManifest.of(
        PREDICTION.name,
        spec.to_dict(),
        responses,
        division=[tasks.index.tobytes(), *(_division(partition) for partition in partitions)],
        seed=spec.seed,
        n_folds=len(partitions),
    )
    return Study(
        PREDICTION,
        manifest,
        dict(enumerate(partitions)),
        partial(run_partition, spec, responses, tasks),
        partial(_summaries, spec, tasks),
    )


def _usable(spec: PredictionSpec, responses: ResponseMatrix) -> ResponseMatrix:
    """Refuse responses that cannot be studied, before the long work; leave out models without any."""
    has_answers = responses.observed.any(axis=1)
    if not has_answers.all():  # a filter of items left some models nothing
        responses = responses.take(models=np.flatnonzero(has_answers))
    if spec.cost:
        response_costs(responses, CostUnit(spec.cost, spec.input_weight))
    return responses


def _division(partition: Partition) -> bytes:
    arrays = (partition.train, partition.test, partition.is_held_out, partition.task_order)
    return b"/".join(array.tobytes() for array in arrays)


def _summaries(spec: PredictionSpec, tasks: Tasks, folder: Path) -> Tables:
    errors = sum_errors(PREDICTION.scan(folder, PREDICTIONS), PREDICTION.scan(folder, RUNS))
    return {
        TASKS: tasks.table(),
        CURVES: summarise_curves(errors),
        COSTS: costs_to_reach(errors, spec),
        AT_COST: errors_at_cost(errors, spec),
    }
