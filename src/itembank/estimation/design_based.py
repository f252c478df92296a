"""Scores and intervals whose validity rests on the random draw of the items, not on the item model."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction
from itembank.estimation.asked import Asked, check_answered
from itembank.estimation.difference_estimator import (
    Drawn,
    composite,
    difference_values,
    drawn,
    error_terms,
    expected_variances,
    moderated,
)
from itembank.estimation.drawn_predictions import Predicted, factors_of, means_elsewhere, predicted_answers
from itembank.estimation.estimates import Scores
from itembank.estimation.observations import found_items
from itembank.estimation.point_methods import Known
from itembank.estimation.regressions import reconciled_within
from itembank.numerics.arrays import FloatArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.intervals import binary_variance, t_reach
from itembank.numerics.parallel import one_blas_thread
from itembank.responses.responses import ResponseMatrix


@one_blas_thread()
def design_based_estimates(
    bank: Bank, responses: ResponseMatrix, selection: Selection, *, level: float = 0.95
) -> Scores:
    """Estimate full-benchmark scores with intervals that are valid whether or not the item model is right.

    The item model and a few factors predict every response (`predicted_answers`); the drawn items, whose inclusion
    probabilities are known, say how far they are off on the rest. Only the width of the intervals depends on how good
    the predictions are.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, in any order. Responses missing among the chosen items count as missing at random, with a
        `DataWarning`: for them the guarantee rests on that.
    selection : Selection
        Drawn from this bank by chance, with its inclusion probabilities.
    level : float
        Of the intervals.

    Returns
    -------
    Scores
        On the scenarios, then overall, cut to what the observed responses leave possible. The overall score comes from
        all drawn items together (`difference_values`, with variances `moderated`), those of scenarios are `composite`,
        moved to agree with it (`reconciled_within`).

    Raises
    ------
    DataError
        When the selection has no inclusion probabilities, was cut since it was drawn, or is of another bank, an item
        is not in the bank, or a model answered fewer than two chosen items.
    ParameterError
        When the level is outside (0, 1).

    Examples
    --------
    >>> selection = select(bank, 100, method="random", rng=0)  # doctest: +SKIP
    >>> value, standard_error, low, high = design_based_estimates(bank, responses, selection)  # doctest: +SKIP
    """
    check_fraction("level", level)
    observations = found_items(bank, responses, selection)
    asked = Asked.of_observations(bank, observations, selection)
    asked.check_drawn(responses.model_ids)
    check_answered(observations, responses, selection)
    return judged_by_design(Known.of(asked)).scores(level)


class Chance(NamedTuple):
    """What a draw leaves to chance, in n_scenarios scenarios or in all drawn items together."""

    fitted: FloatArray  # (n_models, n_columns): `error_terms` of predictions from all answers
    left_out: FloatArray  # (n_models, n_columns): And of predictions from the others
    variance: FloatArray  # (n_models, n_scenarios): Of the difference estimator
    expected: FloatArray  # (n_models, n_scenarios): What was expected of it
    freedom: FloatArray  # (n_models, n_scenarios)
    of_one: FloatArray  # (n_models, n_scenarios): Squared error if one answer, the mean one, is wholly wrong


class ByDesign(NamedTuple):
    """What drawn items say of the scores of n_models models."""

    values: FloatArray  # (n_models, n_targets)
    variances: FloatArray  # (n_models, n_targets)
    freedom: FloatArray  # (n_models, 1)
    least: FloatArray  # (n_models, n_targets): What the answers leave possible
    most: FloatArray  # (n_models, n_targets)
    whole: Chance
    parts: Chance  # The same as `whole` where there is one scenario

    def scores(self, level: float) -> Scores:
        """Give the scores Student's intervals."""
        half = t_reach(level, np.maximum(self.freedom, 1.0)) * np.sqrt(self.variances)
        ends = (self.values - half, self.values + half, self.values)
        low, high, values = (np.clip(scores, self.least, self.most) for scores in ends)
        return Scores(values, np.sqrt(self.variances), low, high)


def judged_by_design(known: Known) -> ByDesign:
    """Find what drawn items say of all models.

    The overall score is estimated from all drawn items together, with weights ``w_j omega_i``; where there is one
    scenario, it is that one's score.
    """
    bank, observations, targets = known.bank, known.observations, known.bank.targets
    probabilities = known.asked.chances_of_columns
    models, columns = np.arange(observations.responses.shape[0]), np.arange(observations.positions.size)
    n_factors, apart = factors_of(known.asked)
    blocks = [
        predicted_answers(known.take(models=models[block], columns=columns), n_factors)
        for block in row_blocks(models.size, bank.n_items, times=4)
    ]
    predicted = Predicted(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))
    index, omega = targets.scenario_index[observations.positions], targets.weights[observations.positions]
    answers, of_scenarios = observations.responses, targets.scenario_weights
    positions = observations.selected
    n_drawn = np.bincount(targets.scenario_index[positions], minlength=targets.n_scenarios)
    parts = drawn(answers, omega, probabilities, index, targets.n_scenarios, n_drawn=n_drawn)
    whole = replace(parts, weights=of_scenarios[index] * omega, scenario_index=np.zeros_like(index), n_scenarios=1)
    correction = whole.weights * (1.0 - probabilities) / probabilities
    value = difference_values(whole, predicted.fitted, (predicted.unseen @ of_scenarios)[:, None])
    chance = chance_of_draw(whole, predicted)
    least = np.column_stack([parts.known, whole.known])
    most = np.minimum(least + np.column_stack([parts.unseen_weight, whole.unseen_weight]), 1.0)
    if targets.n_scenarios == 1:
        values, variances = (np.column_stack([one, one]) for one in (value, chance.variance))
        return ByDesign(values, variances, chance.freedom, least, most, chance, chance)
    # what predictions are off in the other scenarios says nothing of the chance in a scenario's own draw
    off = means_elsewhere(answers - predicted.fitted, correction, index, targets.n_scenarios)
    synthetic = parts.known + predicted.unseen + parts.unseen_weight * off
    direct = difference_values(parts, predicted.fitted, predicted.unseen)
    # how far all drawn items together are off what was expected
    ratio = np.divide(chance.variance, chance.expected, out=np.ones(value.shape), where=chance.expected > 0.0)
    of_parts = chance_of_draw(parts, predicted, times=ratio)
    left = 1.0 - np.bincount(targets.scenario_index[positions], targets.weights[positions], apart.size)
    # the draw moves what is predicted of a scenario as it moves the overall score
    moved = chance.variance * (parts.unseen_weight / np.maximum(whole.unseen_weight, 1e-12)) ** 2
    scenarios, squares = composite(synthetic, direct, of_parts.variance, apart, parts, left=left, by_draw=moved)
    # of a scenario that should have been answered and was not, the draw says nothing
    unknown = np.where((n_drawn > 0) & (parts.n_observed == 0.0), squares, 0.0) @ of_scenarios**2
    values, variances = np.column_stack([scenarios, value]), np.column_stack([squares, chance.variance[:, 0] + unknown])
    scenarios = reconciled_within(values, variances, of_scenarios, least, most)[:, :-1]
    return ByDesign(np.column_stack([scenarios, value]), variances, chance.freedom, least, most, chance, of_parts)


def chance_of_draw(sample: Drawn, predicted: Predicted, *, times: FloatArray | float = 1.0) -> Chance:
    """Find the variance over samples; the expected one counts `times` over, (n_models, 1)."""
    # residuals of what was fitted to the same answers are too small, and those of predictions from the other answers
    # too large, since the estimate uses the better fit: where the true error was 5.9 points, the latter alone said 6.7
    # and the geometric mean 5.9
    (fitted, freedom), (left_out, _) = (error_terms(sample, one) for one in (predicted.fitted, predicted.left_out))
    plain = expected_variances(sample, np.ones(fitted.shape))
    n_answers = np.maximum(sample.n_observed, 1.0)
    # predictions are not expected to be further off than the mean of the answers is: of models that fail, or solve,
    # nearly all items, what past models' answers showed would say up to three times a plain sample's width
    most = binary_variance(sample.n_right / n_answers, sample.n_observed) * plain
    expected = times * np.minimum(expected_variances(sample, predicted.variance), most)
    shown = np.sqrt(sample.sums(fitted**2) * sample.sums(left_out**2))
    return Chance(fitted, left_out, moderated(sample, shown, freedom, expected), expected, freedom, plain / n_answers)
