"""Which score is meant: that of one run, the expected one over repeated runs, or that on items like these.

An estimate and its calibrated interval are of the score of one full run on the bank's items. The other two scores
differ from it by chance of their own, which is added to the interval: how answers vary from run to run, and which items
happen to be in the benchmark.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.data.targets import ScoreTargets
from itembank.errors import DataError, remedy
from itembank.estimation.basis import ScoreBasis, score_basis
from itembank.estimation.estimand_names import Estimand
from itembank.estimation.observations import Observations, attempts_of, bank_positions, counted_trials, usual_attempts
from itembank.estimation.point import Known
from itembank.estimation.predictions import sums_at
from itembank.estimation.response_summary import blocks_of_models
from itembank.estimation.scores import Scores
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray

FEWEST_ITEMS = 20
"""A model's own repeated attempts tell how much its answers vary when they are at so many items: the ratio of two sums
over 20 items has a relative error of about a quarter."""


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

    ``r / n sum_i omega_i^2 p_i (1 - p_i)`` over all items of a scenario, with n the attempts at an item in one run and
    r the variance of one attempt over the ``p (1 - p)`` of the item model: less than one, since a model that solves
    half of some kind of items mostly solves the same half each time. r comes from repeated attempts at the same items:
    the model's own at 20 items or more, or else those of the calibration models.

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
    ratio = _attempt_ratio(bank, responses, theta)
    basis = score_basis(bank)
    noise = sums_at(basis.weighted, theta).noise
    return _with_overall(basis.targets, (ratio / attempts_of(responses))[:, None] * noise)


@dataclass(frozen=True, slots=True)
class ExpectedAnswers:
    """What is known of new models' answers to all items: the answers, and what the item model expects of the others.

    Attributes
    ----------
    basis : ScoreBasis
    observations : Observations
    theta : (n_models, n_dims)
    noise_ratio : (n_models, n_scenarios)
        Variance of an answer over ``p (1 - p)``.
    """

    basis: ScoreBasis
    observations: Observations
    theta: FloatArray
    noise_ratio: FloatArray

    @classmethod
    def of(cls, bank: Bank, observations: Observations, theta: FloatArray, attempts: FloatArray) -> Self:
        """Put together what is known of models with these abilities and attempts at an item, (n_models,)."""
        basis = score_basis(bank)
        return cls(basis, observations, theta, _noise_ratio(bank, basis, attempts))

    def moments(self, block: slice) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of a block of models' response to every item, each (n_block, n_items)."""
        p = probability(self.basis.parameters, self.theta[block])
        variance = self.noise_ratio[block][:, self.basis.targets.scenario_index] * p * (1.0 - p)
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


def _noise_ratio(bank: Bank, basis: ScoreBasis, attempts: FloatArray) -> FloatArray:
    """Return the variance of raw responses over ``p (1 - p)``, (n_models, n_scenarios), with so many attempts.

    With n attempts it is ``1 / n + (1 - 1 / n) g`` where g is the variance between items of one p; g follows from
    the ratio at the number of attempts that the calibration models had.
    """
    past = counted_trials(bank, bank.responses)
    if past is None:
        return np.broadcast_to(basis.noise_ratio, (attempts.size, basis.noise_ratio.size))
    n_past, n = usual_attempts(past, bank.responses.responses), attempts[:, None]
    between = np.ones(basis.noise_ratio.size)  # the most that it can be: one attempt tells nothing of it
    if n_past > 1.0:
        between = np.clip((basis.noise_ratio - 1.0 / n_past) / (1.0 - 1.0 / n_past), 0.0, 1.0)
    return 1.0 / n + (1.0 - 1.0 / n) * between


def _spread(basis: ScoreBasis, mean: FloatArray, variance: FloatArray, value: FloatArray) -> FloatArray:
    """Return squared standard errors of scenario scores over the choice of items, (n_block, n_scenarios)."""
    targets, n = basis.targets, basis.n_counting
    squares = np.zeros((targets.n_items, targets.n_scenarios))
    squares[np.arange(targets.n_items), targets.scenario_index] = targets.weights**2
    of_items = (mean - value[:, targets.scenario_index]) ** 2 + variance
    result: FloatArray = np.maximum(of_items @ squares * n / np.maximum(n - 1.0, 1.0), least_item_variance(basis))
    return result


def _attempt_ratio(bank: Bank, responses: ResponseMatrix, theta: FloatArray) -> FloatArray:
    """Divide the variance of one attempt by the item model's ``p (1 - p)``, (n_models,)."""
    own, expected, n_items = _repeated(bank, responses, theta)
    is_own = n_items >= FEWEST_ITEMS
    ratio = np.divide(own, expected, out=np.zeros(own.shape), where=expected > 0.0)
    if is_own.all():
        return ratio
    past = bank.cache.remember("attempt ratio", lambda: _past_ratio(bank))
    if np.isnan(past):
        how = remedy("repeats='count'", "--repeats count")
        raise DataError(
            "the expected score over repeated runs needs to know how much answers vary from run to run: repeated "
            f"attempts at {FEWEST_ITEMS} items or more by each new model, or by the bank's models, got one attempt at "
            f"an item. Read repeated runs with {how}, or ask for the score of one run (estimand 'run')."
        )
    return np.where(is_own, ratio, past)


def _past_ratio(bank: Bank) -> float:
    """Return the ratio over all calibration models together; NaN where they attempted each item once."""
    if bank.published is not None or bank.responses.n_trials is None:
        return float("nan")
    own, expected, n_items = _repeated(bank, bank.responses, bank.calibration.abilities)
    known = n_items >= FEWEST_ITEMS
    return float(own[known].sum() / expected[known].sum()) if expected[known].sum() > 0.0 else float("nan")


def _repeated(bank: Bank, responses: ResponseMatrix, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum over the items that each model attempted repeatedly, each (n_models,).

    Of the variance of one attempt, ``y (1 - y) n / (n - 1)``, without bias; of the item model's ``p (1 - p)``; and the
    number of these items.
    """
    if responses.n_trials is None:
        nothing = np.zeros(responses.n_models)
        return nothing, nothing, nothing
    positions = bank_positions(bank, responses.items["item_id"], "responses")
    y, n = responses.responses, responses.n_trials.astype(np.float64)
    repeated = (n >= 2.0) & ~np.isnan(y)
    p = probability(bank.parameters.take(positions), theta)
    own = np.where(repeated, y * (1.0 - y) * n / np.maximum(n - 1.0, 1.0), 0.0)
    return own.sum(axis=1), np.where(repeated, p * (1.0 - p), 0.0).sum(axis=1), repeated.sum(axis=1).astype(np.float64)


def _with_overall(targets: ScoreTargets, variance: FloatArray) -> FloatArray:
    """Add the overall score's variance to those of independent scenarios (n_models, n_scenarios)."""
    return np.column_stack([variance, variance @ targets.scenario_weights**2])
