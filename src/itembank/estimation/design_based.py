"""Scores and intervals whose validity rests on the random draw of the items, not on the item model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.estimation.drawn_predictions import means_elsewhere, predicted_answers
from itembank.estimation.estimates import Scores
from itembank.estimation.observations import Observations, bank_positions, found_items
from itembank.estimation.point_methods import Known
from itembank.estimation.predictions import scenario_sums
from itembank.estimation.regressions import reconciled
from itembank.estimation.response_summary import score_basis
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
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
    bank, observations = known.bank, known.observations
    _check_answered(observations, model_ids)
    probability_of = np.full(bank.n_items, np.nan)
    drawn_items = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
    probability_of[drawn_items] = selection.inclusion_probabilities
    probabilities = probability_of[observations.positions]
    models, columns = np.arange(len(model_ids)), np.arange(observations.positions.size)
    blocks = [models[block] for block in row_blocks(models.size, bank.n_items, times=4)]
    return Scores.joined([_block(known.take(models=rows, columns=columns), probabilities, level) for rows in blocks])


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


def _block(known: Known, probabilities: FloatArray, level: float) -> Scores:
    """Estimate the targets of some models, from items drawn with these probabilities, (n_columns,).

    The overall score is estimated from all drawn items together, with weights ``w_j omega_i``. A scenario score is a
    composite (Fay and Herriot 1979; Rao and Molina 2015, section 6.1): what is predicted, put right by what the
    predictions were off in other scenarios, and what the scenario's own drawn items say, weighed by their variances.
    """
    targets, observations = known.bank.targets, known.observations
    index, positions = targets.scenario_index[known.observations.positions], observations.positions
    omega = targets.weights[positions]
    answers, of_scenarios = observations.responses, targets.scenario_weights
    together, n_drawn = np.zeros_like(index), np.array([observations.selected.size])
    whole = drawn(answers, of_scenarios[index] * omega, probabilities, together, 1, n_drawn=n_drawn)
    parts = replace(whole, weights=omega, scenario_index=index, n_scenarios=targets.n_scenarios)
    correction = whole.weights * (1.0 - probabilities) / probabilities
    predicted = predicted_answers(known, correction)
    # above one, `guarded_variances` would take a larger variance than a response in [0, 1] can have
    noise_ratio = np.minimum(score_basis(known.bank).noise_ratio, 1.0) @ of_scenarios
    unseen = (predicted.unseen @ of_scenarios)[:, None]
    value = difference_values(whole, predicted.fitted, unseen)
    # residuals of what was fitted to the same answers are too small, and those of predictions from the other answers
    # too large, since the estimate uses the better fit: where the true error was 5.9 points, the latter alone said 6.7
    # and the geometric mean 5.9
    (fitted, freedom), (left_out, _) = (
        difference_variances(whole, one) for one in (predicted.fitted, predicted.left_out)
    )
    variance = guarded_variances(whole, value, np.sqrt(fitted * left_out), freedom, noise_ratio)
    # what predictions are off in the other scenarios says nothing of the chance in a scenario's own draw
    off = means_elsewhere(answers - predicted.fitted, correction, index, targets.n_scenarios)
    synthetic = parts.known + predicted.unseen + parts.unseen_weight * off
    direct = difference_values(parts, predicted.fitted, predicted.unseen)
    expanded = [one.sums((1.0 - one.probabilities) * one.expansion**2) for one in (whole, parts)]
    of_draw = _ratio(variance, expanded[0]) * expanded[1]
    scenarios, squares = composite(synthetic, direct, of_draw, predicted.apart, parts)
    values = np.column_stack([scenarios, value])
    variances = np.column_stack([squares, variance])
    values = reconciled(values, variances, of_scenarios)
    half = t_reach(level, np.maximum(freedom, 1.0)) * np.sqrt(variances)
    least = np.column_stack([parts.known, whole.known])
    left = np.column_stack([parts.unseen_weight, whole.unseen_weight])
    n_right, n_observed = (np.column_stack([n, n.sum(axis=1)]) for n in (parts.n_right, parts.n_observed))
    near = score_intervals((values, variances, np.broadcast_to(freedom, values.shape)), n_right, n_observed, level)
    # Wilson's form where few outcomes of the rarer kind were seen, and less and less of it up to `MANY_RARER`: with
    # unequal weights it is wider than it need be
    share = np.clip(1.0 - n_rarer(n_right, n_observed)[:, -1:] / MANY_RARER, 0.0, 1.0)
    ends = zip(near, (values - half, values + half), strict=True)
    low, high = (np.clip(share * one + (1.0 - share) * two, least, np.minimum(least + left, 1.0)) for one, two in ends)
    values = np.clip(values, least, np.minimum(least + left, 1.0))
    return Scores(values, np.sqrt(variances), np.fmin(low, values), np.fmax(high, values))


def composite(
    synthetic: FloatArray,  # (n_models, n_scenarios): Predicted, and put right by what was off elsewhere
    direct: FloatArray,  # (n_models, n_scenarios): Put right by what was off in the scenario
    variance: FloatArray,  # (n_models, n_scenarios): Of the direct one, over draws; 0 where nothing was drawn
    apart: FloatArray,  # (n_scenarios,): Mean square of past models' scores about the synthetic one; NaN where unknown
    parts: "Drawn",
) -> tuple[FloatArray, FloatArray]:
    """Weigh two estimates of each scenario score, and say how uncertain the result is, both (n_models, n_scenarios).

    ``T = S + g (D - S)`` with ``g = A / (A + v)``. A is that of past models, or larger, as far as this model's own
    scenarios lie further apart than theirs: ``sum (D - S)^2 / sum (A + v)``. The mean square error is
    ``g^2 v + (1 - g)^2 B`` with B the larger of A and ``(D - S)^2``, what this scenario itself shows.
    """
    is_direct = variance > 0.0
    known = np.where(np.isnan(apart), 0.0, apart)
    gap = np.where(is_direct, direct - synthetic, 0.0)
    expected = np.sum(np.where(is_direct, known + variance, 0.0), axis=1)
    further = np.maximum(_ratio(np.sum(gap**2, axis=1), expected, otherwise=1.0), 1.0)
    wanders = np.where(np.isnan(apart), UNKNOWN, known * further[:, None])
    share = np.where(is_direct, _ratio(wanders, wanders + variance), 0.0)
    beside = np.where(np.isnan(apart) & is_direct, 0.0, np.maximum(wanders, gap**2))
    square = share**2 * variance + (1.0 - share) ** 2 * beside
    return synthetic + share * gap, np.where(parts.unseen_weight > 0.0, square, 0.0)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Responses of n_models models to the n_columns items that were drawn."""

    responses: FloatArray  # (n_models, n_columns): Raw; 0 where missing
    observed: BoolArray  # (n_models, n_columns)
    weights: FloatArray  # (n_columns,): omega, which sum to one over all items of each scenario
    # (n_models, n_columns): pi: inclusion probability times the fraction of the scenario's drawn items that the model
    # answered (missing responses count as missing at random within the scenario); 1 where missing.
    probabilities: FloatArray
    scenario_index: IntArray  # (n_columns,)
    n_scenarios: int

    @property
    def expansion(self) -> FloatArray:
        """``omega_i / pi_i``, 0 where missing, (n_models, n_columns)."""
        return self.observed * self.weights / self.probabilities

    @property
    def n_observed(self) -> FloatArray:
        """Answered items, (n_models, n_scenarios)."""
        return self.sums(self.observed.astype(np.float64))

    @property
    def n_right(self) -> FloatArray:
        """Sum of the observed responses, (n_models, n_scenarios)."""
        return self.sums(self.responses)

    @property
    def known(self) -> FloatArray:
        """``sum_S omega_i y_i`` over the observed items, (n_models, n_scenarios)."""
        return self.sums(self.observed * self.weights * self.responses)

    @property
    def unseen_weight(self) -> FloatArray:
        """Weight of all items of the scenario that were not observed, (n_models, n_scenarios)."""
        # exactly zero for a complete scenario: 1 - sum omega leaves rounding of about 1e-16 an item
        left = 1.0 - self.sums(self.observed * self.weights)
        return np.where(left > 1e-12, left, 0.0)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum over the items of each scenario: (n_models, n_columns) to (n_models, n_scenarios)."""
        return scenario_sums(values, self.scenario_index, self.n_scenarios)

    def spread_out(self, values: FloatArray) -> FloatArray:
        """Repeat for each item what belongs to its scenario: (n_models, n_scenarios) to (n_models, n_columns)."""
        return values[:, self.scenario_index]


def drawn(
    responses: FloatArray,
    weights: FloatArray,
    inclusion_probabilities: FloatArray,
    scenario_index: IntArray,
    n_scenarios: int,
    *,
    n_drawn: IntArray | None = None,
) -> Drawn:
    """Arrange responses (n_models, n_columns), NaN where missing, to items drawn with given probabilities.

    `n_drawn` (n_scenarios,) counts drawn items that nobody answered and that have no column, too.
    """
    observed = ~np.isnan(responses)
    if n_drawn is None:
        n_drawn = np.bincount(scenario_index, minlength=n_scenarios)
    answered = scenario_sums(observed.astype(np.float64), scenario_index, n_scenarios)
    fraction = np.divide(answered, n_drawn, out=np.ones(answered.shape), where=n_drawn > 0)
    probabilities = np.where(observed, inclusion_probabilities * fraction[:, scenario_index], 1.0)
    values = np.where(observed, responses, 0.0)
    return Drawn(values, observed, weights, probabilities, scenario_index, n_scenarios)


def scores_of_sample(
    chosen: Drawn,
    values: FloatArray,  # (n_models, n_scenarios)
    unguarded: FloatArray,  # (n_models, n_scenarios): Variances, as `difference_variances` gives them
    freedom: FloatArray,  # (n_models, n_scenarios)
    *,
    noise_ratio: FloatArray,  # (n_scenarios,)
    scenario_weights: FloatArray,  # (n_scenarios,)
    level: float,
) -> Scores:
    """Append the overall score to those of scenarios, and give every target its interval."""
    variances = guarded_variances(chosen, values, unguarded, freedom, noise_ratio)
    parts = scenario_weights**2 * variances
    overall = parts.sum(axis=1)
    # f = V^2 / sum_j (V_j^2 / f_j), with f_j at least one as in `score_intervals`: zero cannot be divided by
    inverse = np.sum(parts**2 / np.maximum(freedom, 1.0), axis=1)  # Satterthwaite (1946)
    overall_freedom = np.divide(overall**2, inverse, out=np.full(overall.shape, np.inf), where=inverse > 0.0)
    value, least, left = (
        np.column_stack([scores, scores @ scenario_weights]) for scores in (values, chosen.known, chosen.unseen_weight)
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


UNKNOWN = 1e6
"""Square by which scenario scores count as off that nobody knows: only what was drawn of a scenario counts then."""
MANY_RARER = 5.0
"""Outcomes of the rarer kind from which on intervals are symmetric."""
PSEUDO_OUTCOMES = 1.0
"""Weight, in outcomes of the rarer kind, of the variance that holds if predictions explain nothing."""


def difference_values(
    sample: Drawn,
    predictions: FloatArray,  # (n_models, n_columns): p of the drawn items
    unseen_predicted: FloatArray,  # (n_models, n_scenarios): ``sum_U omega_i p_i``
) -> FloatArray:
    """Estimate scenario scores by the difference estimator, (n_models, n_scenarios).

    ``T = sum_S omega_i y_i + sum_U omega_i p_i + W_U sum_S b_i (y_i - p_i) / sum_S b_i`` with S the observed
    items, U the others, ``W_U = sum_U omega_i`` and ``b_i = omega_i (1 - pi_i) / pi_i``: what is predicted, and the
    sample's estimate of how far that is off on the unseen items. With the expected ``W_U = sum_S b_i`` it is
    ``sum_all omega p + sum_S omega (y - p) / pi`` (Cassel, Sarndal and Wretman 1976); the ratio (Hajek 1971) takes a
    constant error of the predictions out as well.
    """
    # b_i = (1 - pi_i) omega_i / pi_i; `off` is the mean of y - p that the sample estimates for the unseen items
    correction_weights = (1.0 - sample.probabilities) * sample.expansion
    off = _ratio(
        sample.sums(correction_weights * (sample.responses - predictions)),
        sample.sums(correction_weights),
    )
    left = sample.unseen_weight
    return np.where(left > 0.0, sample.known + unseen_predicted + left * off, sample.known)


def difference_variances(
    sample: Drawn,
    predictions: FloatArray,  # (n_models, n_columns)
) -> tuple[FloatArray, FloatArray]:
    """Variance over samples of `difference_values` and its degrees of freedom, each (n_models, n_scenarios).

    ``V = sum_S (1 - pi_i) (omega_i / pi_i)^2 e_i^2 / (1 - h_i)`` with e the residuals ``y - p`` less their mean
    with weights ``b_i = omega_i (1 - pi_i) / pi_i``, and ``h_i = b_i / sum_S b`` the leverage of a residual on that
    mean. It is the approximation that needs no joint probabilities (Hajek 1964; Deville 1999; Matei and Tille 2005),
    good for designs of high entropy such as systematic sampling in random order, with the small-sample correction of
    MacKinnon and White (1985, HC2) in place of a common n / (n - 1), as weights may be very unequal. It equals
    ``(1 - n/N) s_e^2 / n`` for simple random sampling; for stratified samples it is on the large side.

    Degrees of freedom are ``(sum c)^2 / sum c^2 - 1``, ``c_i = (1 - pi_i) (omega_i / pi_i)^2`` (Satterthwaite 1946, for
    residuals of one variance): n - 1 for equal probabilities; items with inclusion probability one add none.
    """
    # b_i, h_i = b_i / sum_S b, and the residuals less their b-weighted mean
    correction_weights = (1.0 - sample.probabilities) * sample.expansion
    total = sample.sums(correction_weights)
    leverage = np.divide(
        correction_weights,
        sample.spread_out(total),
        out=np.zeros(correction_weights.shape),
        where=correction_weights > 0.0,
    )
    residuals = _centred(sample, sample.responses - predictions, correction_weights, total)
    counts = correction_weights * sample.expansion  # c_i = (1 - pi_i) (omega_i / pi_i)^2
    is_judged = leverage < 1.0 - 1e-9  # a single item is its own mean: its residual is zero
    squares = np.divide(counts * residuals**2, 1.0 - leverage, out=np.zeros(counts.shape), where=is_judged)
    freedom = _ratio(sample.sums(counts) ** 2, sample.sums(counts**2), otherwise=1.0) - 1.0
    return sample.sums(squares), np.maximum(freedom, 0.0)


def guarded_variances(
    sample: Drawn,
    values: FloatArray,  # (n_models, n_scenarios)
    variances: FloatArray,  # (n_models, n_scenarios)
    freedom: FloatArray,  # (n_models, n_scenarios)
    noise_ratio: FloatArray,  # (n_scenarios,), or one: r: how much less than binary ones responses vary; at most one
) -> FloatArray:
    """Variances that do not vanish where a sample shows hardly any variation, (n_models, n_scenarios).

    ``(m V + V_0) / (m + 1)`` with ``V_0 = r u sum_S (1 - pi_i) (omega_i / pi_i)^2`` the variance if predictions
    explained nothing, u the variance of a binary response with the smoothed mean, and m the outcomes of the rarer
    kind: five right answers of five do not show that the item model is right, and the variance is V_0; with many
    outcomes of both kinds it is V.
    """
    return _mixed(variances, _reference(sample, values, noise_ratio), _informative(sample, freedom))


def overall_variances(
    sample: Drawn,
    values: FloatArray,  # (n_models, n_scenarios): Variances as `difference_variances` gives them
    variances: FloatArray,  # (n_models, n_scenarios)
    # Degrees of freedom of the scenarios, (n_models, n_scenarios), and of the overall score, (n_models,)
    freedom: tuple[FloatArray, FloatArray],
    *,
    noise_ratio: FloatArray,  # (n_scenarios,)
    scenario_weights: FloatArray,  # (n_scenarios,)
) -> FloatArray:
    """Variance of the overall score that does not vanish where the samples show hardly any variation, (n_models,).

    ``(M V + V_0) / (M + 1)`` as for a scenario (`guarded_variances`), with ``V = sum_j w_j^2 V_j``,
    ``V_0 = sum_j a_j``, ``a_j = w_j^2 V_0j`` and ``M = sum_j m_j a_j / max_j a_j``, at most the degrees of freedom of
    V: all scenarios together show how well predictions explain answers, each as far as it matters for the score. The
    sum of the guarded variances would be guarded once a scenario: from 30 items in six scenarios its intervals were a
    quarter wider than they need be.
    """
    of_scenarios, of_overall = freedom
    parts = scenario_weights**2 * _reference(sample, values, noise_ratio)
    largest = parts.max(axis=1)
    informative = _ratio(np.sum(_informative(sample, of_scenarios) * parts, axis=1), largest)
    total = np.sum(scenario_weights**2 * variances, axis=1)
    return _mixed(total, parts.sum(axis=1), np.minimum(informative, of_overall))


def _reference(sample: Drawn, values: FloatArray, noise_ratio: FloatArray) -> FloatArray:
    """V_0, the variance if predictions explained nothing, (n_models, n_scenarios)."""
    expansion = sample.sums((1.0 - sample.probabilities) * sample.expansion**2)
    return noise_ratio * unit_variances(values, sample.n_observed, np.zeros(values.shape)) * expansion


def _informative(sample: Drawn, freedom: FloatArray) -> FloatArray:
    """m: few degrees of freedom say as little about V as few outcomes of the rarer kind, (n_models, n_scenarios)."""
    return np.minimum(n_rarer(sample.n_right, sample.n_observed), freedom)


def _mixed(variances: FloatArray, reference: FloatArray, n_informative: FloatArray) -> FloatArray:
    result: FloatArray = (n_informative * variances + PSEUDO_OUTCOMES * reference) / (n_informative + PSEUDO_OUTCOMES)
    return result


def n_rarer(n_right: FloatArray, n_observed: FloatArray) -> FloatArray:
    """Outcomes of the rarer kind, ``n min(y, 1 - y)`` of the mean response y."""
    return np.minimum(n_right, n_observed - n_right)


def unit_variances(values: FloatArray, n_observed: FloatArray, rarer: FloatArray) -> FloatArray:
    """Variance of one binary response whose mean is estimated, of the shape of `values`.

    ``T (1 - T)``, where few outcomes of the rarer kind were seen drawn to its value with two outcomes of each kind
    added (Agresti and Coull 1998), which is not zero when all responses agree.
    """
    mean = np.clip(values, 0.0, 1.0)
    smoothed = (n_observed * mean + 2.0) / (n_observed + 4.0)  # Agresti and Coull: two successes, two failures
    total = rarer * mean * (1.0 - mean) + PSEUDO_OUTCOMES * smoothed * (1.0 - smoothed)
    return total / (rarer + PSEUDO_OUTCOMES)


def score_intervals(
    estimates: tuple[FloatArray, FloatArray, FloatArray],  # Values, variances, degrees of freedom
    n_right: FloatArray,  # (n_models, n_targets): Sum and number of the observed responses
    n_observed: FloatArray,  # (n_models, n_targets)
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Interval of each estimate, inside [0, 1], from Wilson's score interval at the effective sample size.

    The effective sample size is that of a binomial mean of the same variance, ``n* = u / V`` (Kott and Carr 1997,
    Korn and Graubard 1998), t quantiles stand for normal ones, and the end points solve
    ``(T - x)^2 = t^2 x (1 - x) / n*``. Wide of zero and one it is ``T +- t sqrt(V)``; near them it leans inwards,
    whereas the symmetric interval does not and covers too seldom there. Where every response was right the interval
    reaches one, since no response contradicts that; likewise zero.
    """
    values, variances, freedom = estimates
    quantile = t_reach(level, np.maximum(freedom, 1.0))
    # ratio = t^2 / n*; the roots of (T - x)^2 = ratio x (1 - x) are centre +- half
    ratio = quantile**2 * variances / unit_variances(values, n_observed, n_rarer(n_right, n_observed))
    mean = np.clip(values, 0.0, 1.0)
    centre = (mean + ratio / 2.0) / (1.0 + ratio)
    half = np.sqrt(ratio * mean * (1.0 - mean) + ratio**2 / 4.0) / (1.0 + ratio)
    low = np.where(n_right > 0.0, np.maximum(centre - half, 0.0), 0.0)
    high = np.where(n_right < n_observed, np.minimum(centre + half, 1.0), 1.0)
    return low, high


def _centred(sample: Drawn, values: FloatArray, weights: FloatArray, total: FloatArray) -> FloatArray:
    """Values less their weighted mean in each scenario, (n_models, n_columns)."""
    return values - sample.spread_out(_ratio(sample.sums(weights * values), total))


def _ratio(top: FloatArray | float, bottom: FloatArray, *, otherwise: float = 0.0) -> FloatArray:
    """Divide, with a fixed result where the divisor is zero."""
    result: FloatArray = np.divide(top, bottom, out=np.full(np.shape(bottom), otherwise), where=bottom > 0.0)
    return result
