"""Which score is meant: that of one run, or the mean over repeated runs.

An estimate and its calibrated interval are of the score of one full run on the bank's items. The mean over repeated
runs differs from it by how answers vary from run to run, which is added to the interval.
"""

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.marks import batches
from itembank.errors import DataError, remedy
from itembank.estimation.estimates import Scores
from itembank.estimation.observations import bank_positions, chance_shares
from itembank.estimation.predictions import sums_at
from itembank.estimation.response_summary import ScoreBasis, score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.intervals import normal_reach
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets

FEWEST_ITEMS = 20
"""A model's own repeated attempts tell how much its answers vary when they are at so many items: the ratio of two sums
over 20 items has a relative error of about a quarter."""

UNLIKE = 4.0
"""A model's attempts vary by chance at least as if so many of them had ended unlike the rest: z^2 of a 95 % interval,
which gives a model that never succeeded in K attempts the upper limit of Wilson (1927), about 4 / K. Its own attempts
alone would say that its score over repeated runs is zero for sure."""


def run_variance(
    bank: Bank,
    responses: ResponseMatrix,  # Of the new models, with the attempts behind each response
    theta: FloatArray,  # (n_models, n_dims): Their abilities
) -> FloatArray:
    """Find the variance of the score of one run around the mean over repeated runs, (n_models, n_targets).

    That of `run_noise`, with the ratio from repeated attempts at the same items: the model's own at 20 items or more,
    or else those of the past models.
    """
    own: FloatArray = np.ones(responses.n_models)
    is_own: BoolArray = np.zeros(responses.n_models, dtype=bool)
    positions, trials = bank_positions(bank, responses.items["item_id"], "responses"), responses.n_trials
    if trials is not None:
        own, expected = attempt_ratio(
            bank.parameters.take(positions), responses.responses, trials.astype(np.float64), theta, unlike=UNLIKE
        )
        is_own = expected > 0.0
    ratio = own if is_own.all() else np.where(is_own, own, past_ratio(bank))
    of_items = bank.targets.weights[positions], bank.targets.scenario_index[positions]
    shares = chance_shares(responses.responses, trials, *of_items, bank.targets.n_scenarios)
    return run_noise(score_basis(bank), theta, ratio[:, None] * shares)


def run_noise(
    basis: ScoreBasis,
    theta: FloatArray,  # (n_models, n_dims)
    # (n_models, n_scenarios): r: the variance of a response from run to run over ``p (1 - p)``; that of one attempt
    # over their number (`chance_shares`)
    ratio: FloatArray,
) -> FloatArray:
    """Return ``r sum_i omega_i^2 p_i (1 - p_i)`` over all items of each target, (n_models, n_targets)."""
    variance = ratio * sums_at(basis.weighted, theta).noise
    return np.column_stack([variance, variance @ basis.targets.scenario_weights**2])


def past_ratio(bank: Bank) -> float:
    """Divide the variance of one attempt by the item model's ``p (1 - p)``, over all past models together.

    It is less than one, since a model that solves half of some kind of items mostly solves the same half each time.
    """

    def find() -> float:
        if bank.responses.n_trials is None:
            return float("nan")
        trials = bank.responses.n_trials.astype(np.float64)
        ratio, expected = attempt_ratio(bank.parameters, bank.responses.responses, trials, bank.calibration.abilities)
        with np.errstate(invalid="ignore"):  # NaN where no model has repeated attempts
            return float(np.nansum(ratio * expected) / expected.sum())

    ratio = bank.cache.remember("attempt ratio", find)
    if np.isnan(ratio):
        how = remedy("repeats='count'", "itembank import --repeats count")
        other = remedy("estimand='run'", "--estimand run")
        raise DataError(
            "the score over repeated runs needs to know how much answers vary from run to run: repeated "
            f"attempts at {FEWEST_ITEMS} items or more by each new model, or by past models, got one attempt at "
            f"an item. Read repeated runs with {how}, or ask for the score of one run ({other})."
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


def attempt_ratio(
    parameters: ItemParameters,  # Of n_columns items
    responses: FloatArray,  # (n_models, n_columns)
    n_trials: FloatArray,  # (n_models, n_columns)
    theta: FloatArray,  # (n_models, n_dims)
    *,
    unlike: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Divide the variance of one attempt by the item model's ``p (1 - p)``, over the items attempted repeatedly.

    The variance of an attempt is ``y (1 - y) n / (n - 1)``, without bias; on average over the items it is taken to be
    at least ``q (1 - q)`` with ``q = unlike / (K + unlike)``, K attempts in all.

    Returns (n_models,): NaN without such an item; (n_models,): The sum that divides: zero where there are fewer than 20
    such items.
    """
    repeated = (n_trials >= 2.0) & ~np.isnan(responses)
    p = probability(parameters, theta)
    own = np.where(repeated, responses * (1.0 - responses) * n_trials / np.maximum(n_trials - 1.0, 1.0), 0.0)
    expected = np.where(repeated, p * (1.0 - p), 0.0).sum(axis=1)
    expected = np.where(repeated.sum(axis=1) >= FEWEST_ITEMS, expected, 0.0)
    q = unlike / np.maximum(np.where(repeated, n_trials, 0.0).sum(axis=1) + unlike, 1.0)
    variance = np.maximum(own.sum(axis=1), repeated.sum(axis=1) * q * (1.0 - q))
    nothing = np.full(expected.shape, np.nan)
    return np.divide(variance, expected, out=nothing, where=expected > 0.0), expected


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
