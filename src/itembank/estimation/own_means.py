"""Means of what models answered themselves: the score where they answered everything, else that of a random draw."""

from typing import NamedTuple

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.difference_estimator import (
    difference_values,
    difference_variances,
    drawn,
    expected_variances,
    moderated,
)
from itembank.estimation.estimates import Scores, joined
from itembank.estimation.predictions import scenario_sums
from itembank.estimation.response_summary import score_basis
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.intervals import binary_variance, t_reach, wilson_ends
from itembank.responses.responses import ResponseMatrix

ONE = np.ones(1)
FEWEST = 2
"""Answers in a scenario from which on their spread says how far their mean may be off."""


class OwnMeans(NamedTuple):
    """Means of the answers that n_models models gave, as the bank's scores are means, beside its estimates."""

    scores: Scores  # (n_models, n_targets): With the intervals of a random draw; NaN where nothing can be said
    n_answers: IntArray  # (n_models,): To items of the benchmark, also those that a published bank leaves out
    is_complete: BoolArray  # (n_models,): All items that count were answered
    is_pooled: (
        BoolArray  # (n_models,): The overall mean is one over all answers, for want of scenarios or answers in one
    )


def own_means(bank: Bank, responses: ResponseMatrix, *, level: float) -> OwnMeans:
    """Take the means of all answers, with intervals for items that were drawn at random from each scenario.

    Items that a published bank leaves out (`Bank.rest`) are told by their numbers alone, and their scenarios by the
    responses. Where these say none, or a scenario has fewer than two answers, the overall mean is one over all answers,
    and scenarios are unknown.
    """
    targets = bank.targets
    scenario, weights, is_told = _places(bank, responses)
    counts = weights > 0.0
    sizes = np.bincount(targets.scenario_index[targets.weights > 0.0], minlength=targets.n_scenarios)
    sizes = sizes if targets.rest_sizes is None else sizes + targets.rest_sizes
    places = Places(scenario[counts], weights[counts], sizes, targets.scenario_weights, is_told)
    noise, values = np.minimum(score_basis(bank).noise_ratio, 1.0), responses.responses[:, counts]
    blocks = list(row_blocks(responses.n_models, counts.size, times=4))
    scores, *others = zip(*(_of_some(values[block], places, noise, level) for block in blocks), strict=True)
    return OwnMeans(joined(scores), *map(np.concatenate, others))


class Places(NamedTuple):
    """Where the items of responses stand in the scores."""

    scenario: IntArray  # (n_columns,)
    weights: FloatArray  # (n_columns,): Within the scenario
    sizes: IntArray  # (n_scenarios,): Items that count in each
    scenario_weights: FloatArray  # (n_scenarios,)
    is_told: bool  # Whether the scenarios of all are known


def _of_some(values: FloatArray, places: Places, noise: FloatArray, level: float) -> OwnMeans:
    """Take the means of the answers of some models (n_models, n_columns)."""
    scenario, sizes = places.scenario, places.sizes
    observed = ~np.isnan(values)
    n_answers, n_total = observed.sum(axis=1), int(sizes.sum())
    alike = Places(np.zeros_like(scenario), np.full(scenario.size, 1.0 / n_total), sizes.sum(keepdims=True), ONE, True)
    pooled = _means(values, alike, noise.max(keepdims=True), level)
    found, is_pooled = Scores.unknown(values.shape[0], sizes.size + 1), np.full(values.shape[0], True)
    if places.is_told:
        found = _means(values, places, noise, level)
        answered = scenario_sums(observed.astype(np.float64), scenario, sizes.size)
        is_pooled = np.any((answered < FEWEST) & (answered < sizes), axis=1)
    is_foreign = (n_answers > n_total) | (n_answers < FEWEST)
    for ours, theirs in zip(found, pooled, strict=True):
        ours[is_pooled, :-1] = np.nan
        ours[is_pooled, -1] = theirs[is_pooled, -1]
        ours[is_foreign] = np.nan
    return OwnMeans(found, n_answers, n_answers == n_total, is_pooled)


def _places(bank: Bank, responses: ResponseMatrix) -> tuple[IntArray, FloatArray, bool]:
    """Scenario of each item of the responses and its weight in it, 0 where it does not count, each (n_items,).

    And whether the scenarios of all are known.
    """
    targets = bank.targets
    known = {item: position for position, item in enumerate(bank.item_ids)}
    positions = np.array([known.get(item, -1) for item in responses.item_ids], dtype=np.int64)
    scenario = np.where(positions >= 0, targets.scenario_index[positions], -1)
    weights = np.where(positions >= 0, targets.weights[positions], 0.0)
    if bank.rest is None:
        return scenario, weights, True
    by_name = {name: number for number, name in enumerate(targets.scenarios)}
    named = np.array([by_name.get(name, -1) for name in responses.items["scenario"].to_list()], dtype=np.int64)
    scenario = np.where(positions >= 0, scenario, named if len(by_name) > 1 else 0)
    is_told = bool(np.all(scenario >= 0)) and targets.within == "micro"
    return scenario, np.where(positions >= 0, weights, 1.0 / targets.scenario_sizes[scenario]), is_told


def _means(values: FloatArray, places: Places, noise_ratio: FloatArray, level: float) -> Scores:
    """Means of answers as scores are means, and their intervals if each scenario's items were drawn at random."""
    n_scenarios = places.sizes.size
    drawn_all = np.ones(places.scenario.size)
    chosen = drawn(values, places.weights, drawn_all, places.scenario, n_scenarios, n_drawn=places.sizes)
    nothing = np.zeros(values.shape), np.zeros((values.shape[0], n_scenarios))
    value, (shown, freedom) = difference_values(chosen, *nothing), difference_variances(chosen, nothing[0])
    units = noise_ratio * binary_variance(value, chosen.n_observed)
    variance = moderated(chosen, shown, freedom, expected_variances(chosen, units[:, places.scenario]))
    weights = places.scenario_weights
    parts = weights**2 * variance
    total = parts.sum(axis=1)
    # f = V^2 / sum_j (V_j^2 / f_j), with f_j at least one: zero cannot be divided by
    inverse = np.sum(parts**2 / np.maximum(freedom, 1.0), axis=1)  # Satterthwaite (1946)
    of_total = np.divide(total**2, inverse, out=np.full(total.shape, np.inf), where=inverse > 0.0)
    n_answers = np.column_stack([chosen.n_observed, chosen.n_observed.sum(axis=1)])
    value, least, left = (np.column_stack([one, one @ weights]) for one in (value, chosen.known, chosen.unseen_weight))
    variance, freedom = np.column_stack([variance, total]), np.column_stack([freedom, of_total])
    ratio = t_reach(level, np.maximum(freedom, 1.0)) ** 2 * variance / binary_variance(value, n_answers)
    low, high = wilson_ends(value, ratio)
    low, high = (np.clip(end, least, np.minimum(least + left, 1.0)) for end in (low, high))
    return Scores(value, np.sqrt(variance), low, high)
