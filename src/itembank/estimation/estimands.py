"""Which score is meant: that of one run, the expected one over repeated runs, or that on items like these.

An estimate and its calibrated interval are of the score of one full run on the bank's items. The other two scores
differ from it by chance of their own, which is added to the interval: how answers vary from run to run, and which items
happen to be in the benchmark.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from itembank.bank.banks import Bank
from itembank.errors import DataError, remedy
from itembank.estimation.basis import ScoreBasis, score_basis
from itembank.estimation.estimand_names import Estimand
from itembank.estimation.noise import response_moments
from itembank.estimation.observations import (
    Observations,
    attempts_of,
    bank_positions,
    counted_trials,
    usual_attempts,
)
from itembank.estimation.point import Known
from itembank.estimation.predictions import sums_at
from itembank.estimation.response_summary import blocks_of_models
from itembank.estimation.scores import Scores
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets

FEWEST_ITEMS = 20
"""A model's own repeated attempts tell how much its answers vary when they are at so many items: the ratio of two sums
over 20 items has a relative error of about a quarter."""

UNLIKE = 4.0
"""A model's attempts vary by chance at least as if so many of them had ended unlike the rest: z^2 of a 95 % interval,
which gives a model that never succeeded in K attempts the upper limit of Wilson (1927), about 4 / K. Its own attempts
alone would say that its expected score is zero for sure."""


@dataclass(frozen=True, slots=True)
class AttemptNoise:
    """How responses vary around the item model, from attempt to attempt and from item to item.

    Attributes
    ----------
    ratio : float
        Variance of one attempt over the ``p (1 - p)`` of the item model, for the calibration models together: less than
        one, since a model that solves half of some kind of items mostly solves the same half each time. NaN where they
        attempted each item once.
    response_ratio : (n_scenarios,)
        Variance of a response of the calibration models over ``p (1 - p)``.
    usual_attempts : float
        Attempts behind a response of theirs; NaN where responses are no counts.
    """

    ratio: float
    response_ratio: FloatArray
    usual_attempts: float

    @classmethod
    def of_bank(cls, bank: Bank) -> Self:
        """Learn it from the calibration models; once for a bank in memory."""
        return bank.cache.remember("attempt noise", lambda: cls._learnt(bank))

    @classmethod
    def _learnt(cls, bank: Bank) -> Self:
        past = counted_trials(bank, bank.responses)
        usual = float("nan") if past is None else usual_attempts(past, bank.responses.responses)
        return cls(_past_ratio(bank), score_basis(bank).noise_ratio, usual)

    def response_ratios(self, attempts: FloatArray) -> FloatArray:
        """Return the variance of responses over ``p (1 - p)``, (n_models, n_scenarios), for attempts (n_models,).

        With n attempts it is ``1 / n + (1 - 1 / n) g`` where g is the variance between items of one p; g follows from
        the ratio at the number of attempts that the calibration models had.
        """
        if np.isnan(self.usual_attempts):
            return np.broadcast_to(self.response_ratio, (attempts.size, self.response_ratio.size))
        between = np.ones(self.response_ratio.size)  # the most that it can be: one attempt tells nothing of it
        if self.usual_attempts > 1.0:
            single = 1.0 / self.usual_attempts
            between = np.clip((self.response_ratio - single) / (1.0 - single), 0.0, 1.0)
        n = attempts[:, None]
        return 1.0 / n + (1.0 - 1.0 / n) * between


def estimand_variance(estimand: Estimand, known: Known, responses: ResponseMatrix, value: FloatArray) -> FloatArray:
    """Find the variance of the score of one run around the score that is meant, (n_models, n_targets).

    Parameters
    ----------
    estimand : 'expected' or 'items-like-these'
    known : Known
    responses : ResponseMatrix
        Of the same models, with the attempts behind each response.
    value : (n_models, n_targets)
        Estimates.
    """
    theta = known.summary.abilities
    if estimand == "expected":
        return run_variance(known.bank, responses, theta)
    return item_variance(ExpectedAnswers.of(known.bank, known.observations, theta, attempts_of(responses)), value)


def run_variance(bank: Bank, responses: ResponseMatrix, theta: FloatArray) -> FloatArray:
    """Find the variance of the score of one run around the expected score, (n_models, n_targets).

    That of `run_noise`, with the ratio from repeated attempts at the same items: the model's own at 20 items or more,
    or else those of the calibration models.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, with the attempts behind each response.
    theta : (n_models, n_dims)
        Their abilities.

    Raises
    ------
    DataError
        When neither the models nor those of the calibration attempted items repeatedly.
    """
    own, is_own = _own_ratios(bank, responses, theta)
    ratio = own if is_own.all() else np.where(is_own, own, known_ratio(AttemptNoise.of_bank(bank)))
    return run_noise(score_basis(bank), theta, ratio / attempts_of(responses))


def run_noise(basis: ScoreBasis, theta: FloatArray, ratio: FloatArray) -> FloatArray:
    """Return ``r sum_i omega_i^2 p_i (1 - p_i)`` over all items of each target, (n_models, n_targets).

    Parameters
    ----------
    basis : ScoreBasis
    theta : (n_models, n_dims)
    ratio : (n_models,)
        r: the variance of a response from run to run over ``p (1 - p)``; that of one attempt over their number.
    """
    return _with_overall(basis.targets, ratio[:, None] * sums_at(basis.weighted, theta).noise)


def known_ratio(noise: AttemptNoise) -> float:
    """Return the ratio of the calibration models, or raise `DataError` where it is not known."""
    if np.isnan(noise.ratio):
        how = remedy("repeats='count'", "itembank import --repeats count")
        raise DataError(
            "the expected score over repeated runs needs to know how much answers vary from run to run: repeated "
            f"attempts at {FEWEST_ITEMS} items or more by each new model, or by the bank's models, got one attempt at "
            f"an item. Read repeated runs with {how}, or ask for the score of one run (estimand 'run')."
        )
    return noise.ratio


@dataclass(frozen=True, slots=True)
class ExpectedAnswers:
    """What is known of new models' answers to all items: the answers, and what the item model expects of the others.

    Attributes
    ----------
    basis : ScoreBasis
    observations : Observations
    theta : (n_models, n_dims)
    response_ratio : (n_models, n_scenarios)
        Variance of a response over ``p (1 - p)``.
    """

    basis: ScoreBasis
    observations: Observations
    theta: FloatArray
    response_ratio: FloatArray

    @classmethod
    def of(cls, bank: Bank, observations: Observations, theta: FloatArray, attempts: FloatArray) -> Self:
        """Put together what is known of models with these abilities and attempts at an item, (n_models,)."""
        return cls(score_basis(bank), observations, theta, AttemptNoise.of_bank(bank).response_ratios(attempts))

    def moments(self, block: slice) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of a block of models' response to every item, each (n_block, n_items)."""
        p, scale = response_moments(self.basis.parameters, self.theta[block])
        variance = self.response_ratio[block][:, self.basis.targets.scenario_index] * scale
        answered, positions = self.observations.responses[block], self.observations.positions
        seen = ~np.isnan(answered)
        p[:, positions] = np.where(seen, answered, p[:, positions])
        variance[:, positions] = np.where(seen, 0.0, variance[:, positions])
        return p, variance


def item_variance(answers: ExpectedAnswers, value: FloatArray) -> FloatArray:
    """Find the variance of the score over the choice of the bank's items, (n_models, n_targets).

    ``N / (N - 1) sum_i omega_i^2 E[(y_i - T_j)^2]`` in scenario j with N items: the squared standard error of a mean
    over sampled items (Miller 2024, arXiv:2411.00640, eq. 1), where an item that was not answered counts with the
    item model's ``p_i`` and its variance. For right and wrong answers and equal weights it is close to
    ``T (1 - T) / (N - 1)``. Scenarios are taken as given, their items as independent draws. It is at least what one
    wrong answer in N + 2 would give: a model that solves every item here may fail on another one.

    Parameters
    ----------
    answers : ExpectedAnswers
    value : (n_models, n_targets)
        Estimates.
    """
    targets = answers.basis.targets
    blocks = blocks_of_models(value.shape[0], targets.n_items)
    result = [_spread(answers.basis, *answers.moments(block), value[block]) for block in blocks]
    return _with_overall(targets, np.concatenate(result))


def least_item_variance(basis: ScoreBasis) -> FloatArray:
    """Return the variance that one wrong answer in N + 2 items would give each scenario score, (n_scenarios,)."""
    targets, n = basis.targets, basis.n_counting
    squares = np.bincount(targets.scenario_index, weights=targets.weights**2, minlength=targets.n_scenarios)
    result: FloatArray = squares * (n + 1.0) / (n + 2.0) ** 2
    return result


def widened(scores: Scores, variance: FloatArray, *, level: float) -> Scores:
    """Add a variance (n_models, n_targets) of independent chance: each side becomes ``sqrt(side^2 + z^2 variance)``."""
    reach = ndtri(0.5 + level / 2.0) ** 2 * variance
    value = scores.value
    return Scores(
        value,
        np.sqrt(scores.standard_error**2 + variance),
        np.clip(value - np.sqrt((value - scores.low) ** 2 + reach), 0.0, 1.0),
        np.clip(value + np.sqrt((scores.high - value) ** 2 + reach), 0.0, 1.0),
    )


def attempt_ratio(
    parameters: ItemParameters,
    responses: FloatArray,
    n_trials: FloatArray,
    theta: FloatArray,
    *,
    unlike: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Divide the variance of one attempt by the item model's ``p (1 - p)``, over the items attempted repeatedly.

    The variance of an attempt is ``y (1 - y) n / (n - 1)``, without bias; on average over the items it is taken to be
    at least ``q (1 - q)`` with ``q = unlike / (K + unlike)``, K attempts in all.

    Parameters
    ----------
    parameters : ItemParameters
        Of n_columns items.
    responses, n_trials : (n_models, n_columns)
    theta : (n_models, n_dims)
    unlike : float

    Returns
    -------
    (n_models,)
        NaN without such an item.
    (n_models,)
        The sum that divides: zero where there are fewer than 20 such items.
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


def _spread(basis: ScoreBasis, mean: FloatArray, variance: FloatArray, value: FloatArray) -> FloatArray:
    """Return squared standard errors of scenario scores over the choice of items, (n_block, n_scenarios)."""
    targets, n = basis.targets, basis.n_counting
    squares = np.zeros((targets.n_items, targets.n_scenarios))
    squares[np.arange(targets.n_items), targets.scenario_index] = targets.weights**2
    of_items = (mean - value[:, targets.scenario_index]) ** 2 + variance
    result: FloatArray = np.maximum(of_items @ squares * n / np.maximum(n - 1.0, 1.0), least_item_variance(basis))
    return result


def _own_ratios(bank: Bank, responses: ResponseMatrix, theta: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return each model's own ratio, and whether it has one, each (n_models,)."""
    if responses.n_trials is None:
        return np.ones(responses.n_models), np.zeros(responses.n_models, dtype=bool)
    positions = bank_positions(bank, responses.items["item_id"], "responses")
    trials = responses.n_trials.astype(np.float64)
    ratio, expected = attempt_ratio(bank.parameters.take(positions), responses.responses, trials, theta, unlike=UNLIKE)
    return ratio, expected > 0.0


def _past_ratio(bank: Bank) -> float:
    """Return the ratio over all calibration models together; NaN where they attempted each item once."""
    if bank.published is not None or bank.responses.n_trials is None:
        return float("nan")
    trials = bank.responses.n_trials.astype(np.float64)
    ratio, expected = attempt_ratio(bank.parameters, bank.responses.responses, trials, bank.calibration.abilities)
    known = expected > 0.0
    return float(np.average(ratio[known], weights=expected[known])) if known.any() else float("nan")


def _with_overall(targets: ScoreTargets, variance: FloatArray) -> FloatArray:
    """Add the overall score's variance to those of independent scenarios (n_models, n_scenarios)."""
    return np.column_stack([variance, variance @ targets.scenario_weights**2])
