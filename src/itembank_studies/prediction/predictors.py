"""From some answers of the test models to their mean on the held-out items of every task (WILD 6.4)."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.banks import Calibration
from itembank.estimation.regressions import predict_ridge
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The items that are predicted, task after task."""

    items: IntArray  # (n_held_out,): Columns of the responses
    task: IntArray  # (n_held_out,): Rising
    n_tasks: int
    # (n_test, n_held_out): 1.0 where the test model answered, else 0.0: predictions are means over the same items as
    # the truth.
    observed: FloatArray

    def means(self, values: FloatArray) -> FloatArray:
        """Mean of values (n_test, n_held_out) over what each test model answered of each task, (n_test, n_tasks)."""
        return task_means(values, self.observed, self.task, self.n_tasks)


def task_means(
    values: FloatArray,  # (n_models, n_items): Anything where not observed
    observed: FloatArray,  # (n_models, n_items): 1.0 or 0.0
    task: IntArray,  # (n_items,): Rising
    n_tasks: int,
) -> FloatArray:
    """Mean of values (n_models, n_items) over the items of each task that were observed, (n_models, n_tasks).

    Returns (n_models, n_tasks): NaN where nothing was observed.
    """
    present, starts = np.unique(task, return_index=True)
    result = np.full((values.shape[0], n_tasks), np.nan)
    if not present.size:
        return result
    total = np.add.reduceat(np.where(observed > 0.0, values, 0.0), starts, axis=1)
    count = np.add.reduceat(observed, starts, axis=1)
    result[:, present] = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0.0)
    return result


def predict_item_model(
    calibration: Calibration,
    # (n,) or (n_test, n): Columns of the answered items: the same for all, or each model's own; -1 for none
    items: IntArray,
    answers: FloatArray,  # (n_test, n): NaN where the model has no answer; as the calibration's family takes them
    held_out: HeldOut,
    *,
    n_trials: FloatArray | None = None,  # (n_test, n): Trials behind each answer, one by default
) -> FloatArray:
    """Mean predicted response of each task at the posterior mode of ability (WILD eq. 9), (n_test, n_tasks)."""
    parameters, prior = calibration.parameters, calibration.prior
    if items.ndim == 1:
        scored = map_abilities(parameters.take(items), answers, prior, n_trials=n_trials)
    else:
        columns = np.unique(items[items >= 0])
        trials = None if n_trials is None else _in_columns(n_trials, items, columns)
        scored = map_abilities(parameters.take(columns), _in_columns(answers, items, columns), prior, n_trials=trials)
    return held_out.means(probability(parameters.take(held_out.items), scored.theta))


def mean_offsets(
    calibration: Calibration,
    held_out: HeldOut,  # As the training models answered
    means: FloatArray,  # (n_train, n_tasks): Theirs on the held-out items
) -> FloatArray:
    """How far the training models' means lie above those predicted at their own abilities, on average, (n_tasks,).

    The likelihood of a family with a precision looks at the logits of responses: where these crowd at an end, as a
    judge's preferences do, the mean of the fitted distribution is not theirs.
    """
    predicted = held_out.means(probability(calibration.parameters.take(held_out.items), calibration.abilities))
    return mean_where_known(means - predicted)


def _in_columns(values: FloatArray, items: IntArray, columns: IntArray) -> FloatArray:
    """Each model's values (n_test, n) of its own items in the columns (n_columns,) of all; NaN elsewhere."""
    wide = np.full((len(values), columns.size), np.nan)
    rows, places = np.nonzero(items >= 0)
    wide[rows, np.searchsorted(columns, items[rows, places])] = values[rows, places]
    return wide


def predict_task_mean(
    task_of_items: IntArray,  # (n,) or (n_test, n): Task of each answered item
    answers: FloatArray,  # (n_test, n): NaN where the model has no answer
    train_means: FloatArray,  # (n_train, n_tasks): On the held-out items
    *,
    strength: float = 0.0,  # Zero for the plain mean
) -> FloatArray:
    """Mean of the answers of each task, drawn to the training models' mean with `strength` (WILD eq. 15).

    ``(strength mu_t + sum_R y) / (strength + |R|)``; mu_t itself where nothing was answered.

    Returns (n_test, n_tasks).
    """
    n_test, n_tasks = answers.shape[0], train_means.shape[1]
    cell = np.arange(n_test)[:, None] * n_tasks + np.broadcast_to(task_of_items, answers.shape)
    is_there = ~np.isnan(answers)
    total = np.bincount(cell[is_there], weights=answers[is_there], minlength=n_test * n_tasks)
    count = np.bincount(cell[is_there], minlength=n_test * n_tasks)
    total, count = total.reshape(n_test, n_tasks), count.reshape(n_test, n_tasks).astype(np.float64)
    prior = np.broadcast_to(np.nanmean(train_means, axis=0), total.shape)
    known = strength + count
    result: FloatArray = np.divide(strength * prior + total, known, out=prior.copy(), where=known > 0.0)
    return result


def predict_ridge_tasks(
    items: IntArray,  # (n,) or (n_test, n): Columns of the answered items; -1 for none
    answers: FloatArray,  # (n_test, n)
    train_responses: FloatArray,  # (n_train, n_items)
    train_means: FloatArray,  # (n_train, n_tasks): On the held-out items
) -> FloatArray:
    """Ridge regression of each task's mean on the answered items, fitted on the training models (WILD 6.4).

    Where each test model has its own items, each has its own regression.

    Returns (n_test, n_tasks).
    """
    if items.ndim == 1:
        return predict_ridge(train_responses[:, items], train_means, answers)
    rows = [
        predict_ridge(train_responses[:, asked[asked >= 0]], train_means, answers[[row]][:, asked >= 0])
        for row, asked in enumerate(items)
    ]
    return np.concatenate(rows)
