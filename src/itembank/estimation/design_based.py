"""Scores and intervals whose validity rests on the random draw of the items, not on the item model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.estimation.difference_estimator import (
    Drawn,
    composite,
    difference_values,
    drawn,
    error_terms,
    expected_variances,
    moderated,
)
from itembank.estimation.drawn_predictions import (
    Predicted,
    factors_of_selection,
    means_elsewhere,
    predicted_answers,
)
from itembank.estimation.estimates import Scores
from itembank.estimation.observations import Observations, bank_positions, found_items
from itembank.estimation.point_methods import Known
from itembank.estimation.regressions import reconciled
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.blocks import row_blocks
from itembank.numerics.intervals import t_reach
from itembank.numerics.parallel import one_blas_thread
from itembank.responses.responses import ResponseMatrix
from itembank.selection.recipes import n_items_asked

HOW = "Choose the items with --method drawn, random or stratified, and exclude none"


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
        moved to agree with it (`reconciled`).

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
    check_design(bank, selection)
    known = Known.of(bank, found_items(bank, responses, selection))
    return scores_by_design(known, responses.model_ids, selection, level=level)


def check_design(bank: Bank, selection: Selection) -> None:
    """Check that it is known how the items were drawn from this bank."""
    if selection.inclusion_probabilities is None:
        raise DataError(
            "design-based intervals need the probability with which each item was drawn, and this selection "
            f"(method {selection.method!r}) does not know it. {HOW}."
        )
    if selection.bank not in ("", bank.bank_id) and selection.target_digest != bank.target_digest:
        raise DataError(
            f"inclusion probabilities hold for the bank the items were drawn from, {selection.bank}, not "
            f"{bank.bank_id}. Choose again from this bank, or estimate with that one."
        )
    n_asked = n_items_asked(selection)
    if n_asked is not None and n_asked != selection.n_items:
        raise DataError(
            f"inclusion probabilities hold for the {n_asked} items that were drawn, and this selection has "
            f"{selection.n_items}. Give the selection as it was made: items that were not run count as missing."
        )


def is_by_design(known: Known, selection: Selection | None) -> bool:
    """Whether the items were drawn by chance, and each model that answered anything answered enough of them."""
    if selection is None:
        return False
    try:
        check_design(known.bank, selection)
    except DataError:
        return False
    return not _has_too_few(known.observations)[~known.summary.is_silent].any()


def as_if_drawn(bank: Bank, observations: Observations, selection: Selection | None) -> Selection:
    """Return a selection that says how its items were drawn: itself, or a simple random sample of each scenario.

    A `DataWarning` says so where nothing tells how the items came about.
    """
    if selection is not None and selection.inclusion_probabilities is not None:
        return selection
    index, n_scenarios = bank.targets.scenario_index, bank.targets.n_scenarios
    counts = bank.targets.weights > 0.0
    chosen = observations.selected[counts[observations.selected]]
    if chosen.size < counts.sum():
        warn(
            "it is unknown how these items were chosen, so they count as drawn at random within each scenario. If "
            "they are not, scores and intervals are wrong. Choose items with itembank select, and give the selection.",
            DataWarning,
        )
    n_drawn, n_all = (np.bincount(index[items], minlength=n_scenarios) for items in (chosen, np.flatnonzero(counts)))
    return Selection(
        item_ids=tuple(bank.item_ids[item] for item in chosen.tolist()),
        scenarios=tuple(bank.targets.scenarios[index[item]] for item in chosen.tolist()),
        weights=1.0 / n_drawn[index[chosen]],
        method="random",
        bank=bank.bank_id,
        inclusion_probabilities=(n_drawn / np.maximum(n_all, 1))[index[chosen]],
    )


def scores_by_design(known: Known, model_ids: Sequence[str], selection: Selection, *, level: float) -> Scores:
    """Estimate the same scores from responses that are aligned with the items of a checked selection."""
    _check_answered(known.observations, model_ids)
    return judged_by_design(known, selection).scores(level)


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


def judged_by_design(known: Known, selection: Selection) -> ByDesign:
    """Find what the drawn items of a checked selection say of all models.

    The overall score is estimated from all drawn items together, with weights ``w_j omega_i``; where there is one
    scenario, it is that one's score.
    """
    bank, observations, targets = known.bank, known.observations, known.bank.targets
    probability_of = np.full(bank.n_items, np.nan)
    drawn_items = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
    probability_of[drawn_items] = selection.inclusion_probabilities
    probabilities = probability_of[observations.positions]
    models, columns = np.arange(observations.responses.shape[0]), np.arange(observations.positions.size)
    factors = factors_of_selection(bank, selection)
    blocks = [
        predicted_answers(known.take(models=models[block], columns=columns), factors)
        for block in row_blocks(models.size, bank.n_items, times=4)
    ]
    predicted = Predicted(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))
    index, omega = targets.scenario_index[observations.positions], targets.weights[observations.positions]
    answers, of_scenarios = observations.responses, targets.scenario_weights
    together, n_drawn = np.zeros_like(index), np.array([observations.selected.size])
    whole = drawn(answers, of_scenarios[index] * omega, probabilities, together, 1, n_drawn=n_drawn)
    correction = whole.weights * (1.0 - probabilities) / probabilities
    value = difference_values(whole, predicted.fitted, (predicted.unseen @ of_scenarios)[:, None])
    chance = chance_of_draw(whole, predicted)
    values, variances, parts, of_parts = value, chance.variance, whole, chance
    if targets.n_scenarios > 1:
        parts = replace(whole, weights=omega, scenario_index=index, n_scenarios=targets.n_scenarios)
        # what predictions are off in the other scenarios says nothing of the chance in a scenario's own draw
        off = means_elsewhere(answers - predicted.fitted, correction, index, targets.n_scenarios)
        synthetic = parts.known + predicted.unseen + parts.unseen_weight * off
        direct = difference_values(parts, predicted.fitted, predicted.unseen)
        # how far all drawn items together are off what was expected
        ratio = np.divide(chance.variance, chance.expected, out=np.ones(value.shape), where=chance.expected > 0.0)
        of_parts = chance_of_draw(parts, predicted, times=ratio)
        values, variances = composite(synthetic, direct, of_parts.variance, factors.apart, parts)
    values, variances = np.column_stack([values, value]), np.column_stack([variances, chance.variance])
    values = reconciled(values, variances, of_scenarios)
    least = np.column_stack([parts.known, whole.known])
    most = np.minimum(least + np.column_stack([parts.unseen_weight, whole.unseen_weight]), 1.0)
    return ByDesign(values, variances, chance.freedom, least, most, chance, of_parts)


def _check_answered(observations: Observations, model_ids: Sequence[str]) -> None:
    """Refuse too few answers, and warn how missing answers count."""
    lacking = np.flatnonzero(_has_too_few(observations))
    if lacking.size:
        raise DataError(
            "design-based intervals need responses to at least 2 of the chosen items, got fewer from "
            f"{shown([model_ids[model] for model in lacking.tolist()])}. Run the missing ones, or leave these models "
            "out."
        )
    missing = np.flatnonzero(observations.n_missing)
    if missing.shape[0]:
        models = [f"{model_ids[model]} ({observations.n_missing[model]})" for model in missing.tolist()]
        warn(
            f"responses to some of the {observations.selected.size} chosen items are missing: {shown(models)}. They "
            "count as missing at random; if hard items are missing, scores come out too high.",
            DataWarning,
        )


def _has_too_few(observations: Observations) -> BoolArray:
    """Whether models answered so few of the drawn items that their spread says nothing, (n_models,)."""
    n_answered = np.sum(~np.isnan(observations.responses), axis=1)
    result: BoolArray = n_answered < min(2, observations.selected.size)
    return result


def chance_of_draw(sample: Drawn, predicted: Predicted, *, times: FloatArray | float = 1.0) -> Chance:
    """Find the variance over samples; the expected one counts `times` over, (n_models, 1)."""
    # residuals of what was fitted to the same answers are too small, and those of predictions from the other answers
    # too large, since the estimate uses the better fit: where the true error was 5.9 points, the latter alone said 6.7
    # and the geometric mean 5.9
    (fitted, freedom), (left_out, _) = (error_terms(sample, one) for one in (predicted.fitted, predicted.left_out))
    expected = times * expected_variances(sample, predicted.variance)
    shown = np.sqrt(sample.sums(fitted**2) * sample.sums(left_out**2))
    of_one = expected_variances(sample, np.ones(fitted.shape)) / np.maximum(sample.n_observed, 1.0)
    return Chance(fitted, left_out, moderated(sample, shown, freedom, expected), expected, freedom, of_one)
