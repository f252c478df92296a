"""Answers of many models with what an audit compares every item against: the models' abilities from answers alone."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class Panel:
    """Answers, and the models' abilities."""

    values: FloatArray  # (n_models, n_items): Responses in [0, 1], and where there is one
    observed: BoolArray  # (n_models, n_items)
    scenario: IntArray  # (n_items,): Number, from 0, of each item's scenario
    # (n_items,): Number, from 0, of each item's group: its subscenario, or where that is small its scenario.
    group: IntArray
    scores: FloatArray  # (n_models,): Mean response over all items, as far as a model's own items tell
    overall: FloatArray  # (n_models,): Ability in all items, with mean 0 and standard deviation 1
    # (n_models, n_groups): Ability in each group: by its own items, drawn to the ability in the scenario, which is
    # drawn to the overall one.
    theta: FloatArray


def panel_of(responses: ResponseMatrix) -> Panel:
    """Compute abilities from responses."""
    observed = responses.observed
    n_models, least = int(observed.any(axis=1).sum()), 5
    if n_models < least:
        raise DataError(
            f"an audit compares what models answered: there must be at least {least} models with answers, got "
            f"{n_models}. Add results of further models."
        )
    both = ["scenario", "subscenario"]
    is_large = pl.col("subscenario").is_not_null() & (pl.len().over(both) >= 20)  # items to be a group of its own
    named = responses.items.with_columns(own=pl.when(is_large).then("subscenario"))
    ranks = named.select(pl.struct("scenario", "own").rank("dense") - 1).to_series()
    scenario = np.unique(responses.items["scenario"].to_numpy(), return_inverse=True)[1].astype(np.int64)
    return _with_abilities(responses.responses, observed, scenario, ranks.to_numpy().astype(np.int64))


def without_items(panel: Panel, is_left_out: BoolArray) -> Panel:
    """Return the panel with abilities that rest on the other items; a group keeps its items where few would be left."""
    n_items = np.bincount(panel.group)
    n_left = np.bincount(panel.group, ~is_left_out)
    is_used = ~is_left_out | (n_left < 0.5 * n_items)[panel.group]
    used = _with_abilities(panel.values, panel.observed & is_used, panel.scenario, panel.group)
    return replace(panel, scores=used.scores, overall=used.overall, theta=used.theta)


def _with_abilities(values: FloatArray, observed: BoolArray, scenario: IntArray, group: IntArray) -> Panel:
    scores = adjusted_scores(values, observed)
    overall = _standard(scores, observed.sum(axis=1))
    by_scenario = _own_abilities(values, observed, scenario, np.tile(overall[:, None], (1, scenario.max() + 1)))
    scenario_of = np.zeros(group.max() + 1, dtype=np.int64)
    scenario_of[group] = scenario
    theta = _own_abilities(values, observed, group, by_scenario[:, scenario_of])
    return Panel(values, observed, scenario, group, scores, overall, theta)


def adjusted_scores(
    values: FloatArray,  # (n_models, n_items): Responses in [0, 1], and where there is one
    observed: BoolArray,  # (n_models, n_items)
) -> FloatArray:
    """Mean response of each model over all items, as far as its own items tell, (n_models,); 0 without answers.

    The additive fit ``response = score of the model + ease of the item`` by alternating least squares; with complete
    data the plain mean.
    """
    filled = np.where(observed, values, 0.0)
    n_answers = np.maximum(observed.sum(axis=1), 1)
    total = filled.sum(axis=1)
    scores = total / n_answers
    if observed.all():
        return np.asarray(scores)
    known = observed.astype(np.float64)
    item_total, n_models = filled.sum(axis=0), np.maximum(known.sum(axis=0), 1.0)
    ease = np.zeros(item_total.size)
    for _ in range(20):  # with half of the cells missing at random, ten reach the sixth digit
        ease = (item_total - scores @ known) / n_models
        scores = (total - known @ ease) / n_answers
    return np.where(observed.any(axis=1), np.clip(scores + ease.mean(), 0.0, 1.0), 0.0)


def _standard(scores: FloatArray, n_answers: IntArray) -> FloatArray:
    """Log-odds of scores with mean 0 and standard deviation 1 over models, (n_models,); 0 where there is no answer."""
    right = scores * n_answers
    logit = np.log((right + 0.5) / (n_answers - right + 0.5))
    has_any = n_answers > 0
    return _scaled(np.where(has_any, logit - logit[has_any].mean(), 0.0)) if has_any.any() else np.zeros(scores.size)


def _scaled(values: FloatArray) -> FloatArray:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0.0 else np.zeros(values.size)


def _own_abilities(values: FloatArray, observed: BoolArray, group: IntArray, parent: FloatArray) -> FloatArray:
    """Ability in each group, drawn to that in the whole it belongs to (parent), both (n_models, n_groups)."""
    result = parent.copy()
    if parent.shape[1] == 1:
        return result
    for number in range(parent.shape[1]):
        items = np.flatnonzero(group == number)
        mine = observed[:, items]
        n_answers = mine.sum(axis=1)
        share = n_answers / (n_answers + 30.0)  # at thirty items, its own score and the whole's count alike
        own = _standard(adjusted_scores(values[:, items], mine), n_answers)
        result[:, number] = _scaled(share * own + (1.0 - share) * parent[:, number])
    return result
