"""Which score is meant: that of one run, or the mean over repeated runs.

An estimate and its calibrated interval are of the score of one full run on the bank's items. The mean over repeated
runs differs from it by how answers vary from run to run, which is added to the interval.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.marks import batches
from itembank.errors import DataError, remedy
from itembank.estimation.estimates import Scores
from itembank.estimation.observations import are_counts, bank_positions, chance_shares
from itembank.estimation.predictions import scenario_sums, sums_at
from itembank.estimation.response_summary import ScoreBasis, score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import normal_reach
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets

FEWEST_ITEMS = 20
"""A model's own repeated attempts tell how much its answers vary when they are at so many items: the ratio of two sums
over 20 items has a relative error of about a quarter."""

ALIKE = 10.0
"""Items of a scenario as which it counts how answers vary in all scenarios together. With 10 and 20, intervals of
simulated models of whose two scenarios only the one with 40 items of 160 varied covered .93 and .91."""

UNLIKE = 4.0
"""A model's attempts vary by chance at least as if so many of them had ended unlike the rest: z^2 of a 95 % interval,
which gives a model that never succeeded in K attempts the upper limit of Wilson (1927), about 4 / K. Its own attempts
alone would say that its score over repeated runs is zero for sure."""


def run_variance(
    bank: Bank,
    responses: ResponseMatrix,  # Of the new models, with the attempts behind each response
    theta: FloatArray,  # (n_models, n_dims): Their abilities
) -> FloatArray:
    """Find the variance of the score of one run around the mean over repeated runs, (n_models, n_targets)."""
    positions = bank_positions(bank, responses.items["item_id"], "responses")
    answers, trials = responses.responses, responses.n_trials
    return run_noise(score_basis(bank), positions, answers, trials, theta, past=lambda: past_ratio(bank))


def run_noise(
    basis: ScoreBasis,
    positions: IntArray,  # (n_columns,)
    responses: FloatArray,  # (n_models, n_columns)
    n_trials: FloatArray | IntArray | None,  # (n_models, n_columns)
    theta: FloatArray,  # (n_models, n_dims)
    *,
    past: Callable[[], FloatArray],  # Finds `past_ratio`, (n_scenarios,), if it is needed
) -> FloatArray:
    """Return ``r sum_i omega_i^2 p_i (1 - p_i) / n_i`` over all items of each target, (n_models, n_targets).

    r is the variance of one attempt over the item model's ``p (1 - p)``, scenario by scenario: from the model's own
    attempts where it made several at 20 items or more, each right or wrong, or else from those of past models.
    ``1 / n_i`` are `chance_shares`.
    """
    targets = basis.targets
    index, weights, n_scenarios = targets.scenario_index[positions], targets.weights[positions], targets.n_scenarios
    ratio = np.full((len(responses), n_scenarios), np.nan)
    if n_trials is not None:
        of_items = basis.parameters.take(positions), index, n_scenarios
        sums = attempt_sums(responses, n_trials, theta, of_items)
        ratio = attempt_ratio(*sums, unlike=UNLIKE)
    if np.isnan(ratio).any():
        ratio = np.where(np.isnan(ratio), past(), ratio)
    shares = chance_shares(responses, n_trials, weights, index, n_scenarios)
    variance = ratio * shares * sums_at(basis.weighted, theta).noise
    return np.column_stack([variance, variance @ targets.scenario_weights**2])


def past_ratio(bank: Bank) -> FloatArray:
    """Divide the variance of one attempt by the item model's ``p (1 - p)``, all past models together, (n_scenarios,).

    It is less than one, since a model that solves half of some kind of items mostly solves the same half each time.
    Where attempts of any are graded none tells: of models that always failed the variance would be zero.
    """
    answers, targets = bank.responses, bank.targets

    def find() -> FloatArray:
        if answers.n_trials is None or not are_counts(answers.responses, answers.n_trials).all():
            return np.full(targets.n_scenarios, np.nan)
        of_items = bank.parameters, targets.scenario_index, targets.n_scenarios
        sums = attempt_sums(answers.responses, answers.n_trials, bank.calibration.abilities, of_items)
        has_many = sums[2].sum(axis=1) >= FEWEST_ITEMS
        found: FloatArray = attempt_ratio(*(one[has_many].sum(axis=0, keepdims=True) for one in sums))[0]
        return found

    ratio: FloatArray = bank.cache.remember("attempt ratio", find)
    if np.isnan(ratio).any():
        how = remedy("repeats='count'", "itembank import --repeats count")
        other = remedy("estimand='run'", "--estimand run")
        raise DataError(
            "the score over repeated runs needs to know how much answers vary from run to run: repeated "
            f"attempts at {FEWEST_ITEMS} items or more, each right or wrong, by each new model or by past models; got "
            "single attempts, or means of graded ones, which do not tell it. Read attempts as right or wrong with "
            f"{how}; the score of one run ({other}) needs no repeats."
        )
    return ratio


def widened(scores: Scores, variance: FloatArray, *, level: float) -> Scores:
    """Add a variance (n_models, n_targets) of independent chance: each side becomes ``sqrt(side^2 + z^2 variance)``."""
    reach = normal_reach(level) ** 2 * variance
    value = scores.value
    return Scores(
        value,
        np.sqrt(scores.standard_error**2 + variance),
        np.clip(value - np.sqrt((value - scores.low) ** 2 + reach), 0.0, 1.0),
        np.clip(value + np.sqrt((scores.high - value) ** 2 + reach), 0.0, 1.0),
    )


def attempt_sums(
    responses: FloatArray,  # (n_models, n_columns)
    n_trials: FloatArray | IntArray,  # (n_models, n_columns)
    theta: FloatArray,  # (n_models, n_dims)
    of_items: tuple[ItemParameters, IntArray, int],  # Of n_columns items; their scenarios; how many there are of these
) -> tuple[FloatArray, ...]:
    """Sum what `attempt_ratio` needs over the items of each scenario that were attempted repeatedly.

    The variance of one attempt, ``y (1 - y) n / (n - 1)`` without bias; ``p (1 - p)``; the items; the attempts: each
    (n_models, n_scenarios). Zero for models whose attempts are graded.
    """
    repeated = (n_trials >= 2.0) & ~np.isnan(responses) & are_counts(responses, n_trials)[:, None]
    parameters, scenario_index, n_scenarios = of_items
    p = probability(parameters, theta)
    own = responses * (1.0 - responses) * n_trials / np.maximum(n_trials - 1.0, 1.0)
    each = (np.where(repeated, one, 0.0) for one in (own, p * (1.0 - p), 1.0, n_trials))
    return tuple(scenario_sums(one, scenario_index, n_scenarios) for one in each)


def attempt_ratio(
    own: FloatArray,  # (n_models, n_scenarios): As `attempt_sums` gives them
    expected: FloatArray,
    n_items: FloatArray,
    n_attempts: FloatArray,
    *,
    unlike: float = 0.0,
) -> FloatArray:
    """Divide the variance of one attempt by the item model's ``p (1 - p)``, (n_models, n_scenarios).

    In each scenario as if `ALIKE` more of its items had varied as all together do. Over all items the variance is taken
    to be at least ``q (1 - q)`` an item with ``q = unlike / (K + unlike)``, K attempts in all. NaN for models with
    repeated attempts at fewer than 20 items.
    """
    of_all, items = (one.sum(axis=1, keepdims=True) for one in (expected, n_items))
    q = unlike / np.maximum(n_attempts.sum(axis=1, keepdims=True) + unlike, 1.0)
    lacking = np.maximum(items * q * (1.0 - q) - own.sum(axis=1, keepdims=True), 0.0)
    is_known = (items >= FEWEST_ITEMS) & (of_all > 0.0)
    of_all, items = np.where(is_known, of_all, np.nan), np.maximum(items, 1.0)
    own = own + lacking * expected / of_all
    more = ALIKE / items
    result: FloatArray = (own + more * own.sum(axis=1, keepdims=True)) / (expected + more * of_all)
    return result


def linking_variance(
    items: pl.DataFrame,  # The bank's
    targets: ScoreTargets,  # Of these items
    answered: BoolArray,  # (n_models, n_items)
) -> FloatArray | None:
    """Variance of every scenario's score and the overall one that links add, (n_models, n_scenarios + 1).

    ``sum_b (e_b w_b)^2`` over the batches of items that were linked to the bank, with e the error of the mean score on
    a batch and w the weight in the score of those of its items that the model did not answer. None where the bank has
    no linked items.
    """
    found = list(batches(items))
    if not found:
        return None
    result = np.zeros((len(answered), targets.n_scenarios + 1))
    for members, error in found:
        unseen = targets.scenario_means((~answered & members).astype(np.float64))
        result += (error * targets.with_overall(unseen)) ** 2
    return result
