"""Scores and intervals whose validity rests on the random draw of the items, not on the item model."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.estimation.basis import score_basis
from itembank.estimation.difference_estimator import (
    Drawn,
    difference_values,
    difference_variances,
    drawn,
    guarded_variances,
    overall_variances,
    score_intervals,
    tuned_slopes,
)
from itembank.estimation.observations import Observations, bank_positions, found_items
from itembank.estimation.point import Known
from itembank.estimation.response_summary import blocks_of_models
from itembank.estimation.scenario_sums import scenario_sums
from itembank.estimation.scores import Scores
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.splits import dealt_out, splits_of
from itembank.responses.responses import ResponseMatrix
from itembank.selection.recipes import n_items_asked

N_FOLDS = 10
"""Parts of the sample, each predicted from the others: an ability from nine tenths of it is nearly that from all."""

HOW = "Choose the items with --method random or stratified, and exclude none"


@one_blas_thread()
def design_based_estimates(
    bank: Bank, responses: ResponseMatrix, selection: Selection, *, level: float = 0.95
) -> Scores:
    """Estimate full-benchmark scores with intervals that hold whether or not the item model does.

    The item model predicts every response; the drawn items, whose inclusion probabilities are known, say how far
    it is off on the rest. Only the width of the intervals depends on how good the predictions are.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, in any order. Responses missing among the chosen items count as missing at random within
        their scenario, with a `DataWarning`: for them the guarantee rests on that.
    selection : Selection
        Drawn from this bank by chance, with its inclusion probabilities.
    level : float
        Of the intervals.

    Returns
    -------
    Scores
        On the scenarios, then overall, cut to what the observed responses leave possible. The overall score adds up
        scenario estimates before they are cut, and their variances, since scenarios are sampled independently; its
        degrees of freedom are Satterthwaite's.

    Raises
    ------
    DataError
        When the selection has no inclusion probabilities, was cut since it was drawn, or is of another bank, an item
        is not in the bank, a scenario has no chosen item, or a model answered fewer than two chosen items of a scenario
        of more.
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
    _, is_lacking = _answered(known.bank, known.observations)
    return not is_lacking[~known.summary.is_silent].any()


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
            "nothing tells how these items were chosen, and so they count as drawn at random within each scenario. If "
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
    bank, observations = known.bank, known.observations
    _check_answered(bank, observations, model_ids)
    probability_of = np.full(bank.n_items, np.nan)
    drawn_items = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
    probability_of[drawn_items] = selection.inclusion_probabilities
    probabilities = probability_of[observations.positions]
    models, columns = np.arange(len(model_ids)), np.arange(observations.positions.size)
    blocks = [models[block] for block in blocks_of_models(models.size, bank.n_items)]
    return Scores.joined([_block(known.take(models=rows, columns=columns), probabilities, level) for rows in blocks])


def _check_answered(bank: Bank, observations: Observations, model_ids: Sequence[str]) -> None:
    """Refuse too few answers, and warn how missing answers count."""
    names, n_scenarios = bank.targets.scenarios, bank.targets.n_scenarios
    n_drawn = np.bincount(bank.targets.scenario_index[observations.selected], minlength=n_scenarios)
    absent = [names[j] for j in np.flatnonzero(n_drawn == 0)]
    if absent:
        raise DataError(f"every scenario needs chosen items, got none in {shown(absent)}. {HOW}.")
    answered, is_lacking = _answered(bank, observations)
    lacking = np.argwhere(is_lacking)
    if lacking.shape[0]:
        where = [f"{model_ids[model]} in {names[j]} ({answered[model, j]})" for model, j in lacking.tolist()]
        raise DataError(
            "design-based intervals need responses to at least 2 of the chosen items of every scenario, got fewer "
            f"from {shown(where)}. Choose more items, run the missing ones, or leave these models out."
        )
    missing = np.flatnonzero(observations.n_missing)
    if missing.shape[0]:
        models = [f"{model_ids[model]} ({observations.n_missing[model]})" for model in missing.tolist()]
        warn(
            f"responses to some of the {observations.selected.size} chosen items are missing: {shown(models)}. They "
            "count as missing at random within their scenario; if hard items are missing, scores come out too high.",
            DataWarning,
        )


def _answered(bank: Bank, observations: Observations) -> tuple[IntArray, BoolArray]:
    """Count the answered items of each scenario, and say where they are too few, both (n_models, n_scenarios)."""
    n_scenarios, index = bank.targets.n_scenarios, bank.targets.scenario_index
    observed = (~np.isnan(observations.responses)).astype(np.float64)
    answered = scenario_sums(observed, index[observations.positions], n_scenarios).astype(np.int64)
    n_counting = np.bincount(index[bank.targets.weights > 0.0], minlength=n_scenarios)
    return answered, (answered < 2) & (answered < n_counting)


def _block(known: Known, probabilities: FloatArray, level: float) -> Scores:
    """Estimate the targets of some models, from items drawn with these probabilities, (n_columns,)."""
    targets, observations, summary = known.bank.targets, known.observations, known.summary
    index, positions = targets.scenario_index, observations.positions
    chosen = drawn(
        observations.responses,
        targets.weights[positions],
        probabilities,
        index[positions],
        targets.n_scenarios,
        n_drawn=np.bincount(index[observations.selected], minlength=targets.n_scenarios),
    )
    fitted = probability(known.bank.parameters.take(positions), summary.abilities)
    cross_fitted = _cross_fitted(known)
    slopes = tuned_slopes(chosen, cross_fitted)
    values = difference_values(chosen, fitted, summary.posterior_mean - summary.known, slopes)
    variances, freedom = difference_variances(chosen, fitted, slopes)
    cross_fitted_variances, _ = difference_variances(chosen, cross_fitted, slopes)
    # residuals of the fitted ability are too small and cross-fitted ones too large, since the estimate uses the better
    # fit: where the true error was 5.9 points, cross-fitted ones alone said 6.7 and the geometric mean 5.9
    variances = np.sqrt(variances * cross_fitted_variances)
    # above one, `guarded_variances` would take a larger variance than a response in [0, 1] can have
    noise_ratio = np.minimum(score_basis(known.bank).noise_ratio, 1.0)
    design = _Design(chosen, values, variances, freedom, noise_ratio)
    return _with_overall(design, scenario_weights=targets.scenario_weights, level=level)


class _Design(NamedTuple):
    """What the draw says of scenarios: estimates, their variances, not guarded yet, and degrees of freedom."""

    chosen: Drawn
    values: FloatArray
    variances: FloatArray
    freedom: FloatArray
    noise_ratio: FloatArray


def _with_overall(design: _Design, *, scenario_weights: FloatArray, level: float) -> Scores:
    """Append the overall score to arrays (n_models, n_scenarios) and give every target its interval."""
    chosen, values, unguarded, freedom, noise_ratio = design
    variances = guarded_variances(chosen, values, unguarded, freedom, noise_ratio)
    parts = scenario_weights**2 * variances
    overall = parts.sum(axis=1)
    # f = V^2 / sum_j (V_j^2 / f_j), with f_j at least one as in `score_intervals`: zero cannot be divided by
    inverse = np.sum(parts**2 / np.maximum(freedom, 1.0), axis=1)  # Satterthwaite (1946)
    overall_freedom = np.divide(overall**2, inverse, out=np.full(overall.shape, np.inf), where=inverse > 0.0)
    value, least, left = (
        _appended(scores, scenario_weights) for scores in (values, chosen.known, chosen.unseen_weight)
    )
    guarded = overall_variances(
        chosen,
        values,
        unguarded,
        (freedom, overall_freedom),
        noise_ratio=noise_ratio,
        scenario_weights=scenario_weights,
    )
    variance = np.column_stack([variances, guarded])
    estimates = (value, variance, np.column_stack([freedom, overall_freedom]))
    n_right, n_observed = (np.column_stack([n, n.sum(axis=1)]) for n in (chosen.n_right, chosen.n_observed))
    low, high = score_intervals(estimates, n_right, n_observed, level)
    value, low, high = (np.clip(scores, least, np.minimum(least + left, 1.0)) for scores in (value, low, high))
    return Scores(value, np.sqrt(variance), low, high)


def _appended(scenario_scores: FloatArray, scenario_weights: FloatArray) -> FloatArray:
    return np.column_stack([scenario_scores, scenario_scores @ scenario_weights])


def _cross_fitted(known: Known) -> FloatArray:
    """Predict each drawn item from the ability that the other drawn items give, (n_models, n_columns).

    Folds take every tenth of the drawn items of each scenario, in the order of the bank.
    """
    observations, basis = known.observations, score_basis(known.bank)
    positions, drawn_items = observations.positions, observations.selected
    parameters, answers = basis.parameters.take(positions), basis.answers(observations.responses, positions)
    by_scenario = np.argsort(basis.targets.scenario_index[drawn_items], kind="stable")
    fold = dealt_out(by_scenario, N_FOLDS)[np.searchsorted(drawn_items, positions)]
    predicted = np.empty(answers.shape)
    for split in splits_of(fold):
        others = answers.copy()
        others[:, split.test] = np.nan
        start, trials = known.summary.abilities, observations.n_trials
        theta = map_abilities(parameters, others, basis.prior, start=start, n_trials=trials).theta
        predicted[:, split.test] = probability(parameters.take(split.test), theta)
    return predicted
