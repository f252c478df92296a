"""Estimates of scores from items that were drawn with known probabilities, whatever predicts the other answers.

Kernels: the difference estimator, its variance over draws, and composites of what was drawn and what is predicted.
"""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.predictions import scenario_sums
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

PRIOR_FREEDOM = 8.0
"""Degrees of freedom that the expected variance counts for beside those of the sample. Of 4 and 8, on five sets of
results in four bands, 8 had the better interval scores from 30 items."""
UNKNOWN = 1e6
"""Square by which scenario scores count as off that nobody knows: only what was drawn of a scenario counts then."""
LEEWAY = 4.0
"""A new model's scenarios may lie twice as far apart as those of past models, in points."""


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
    off = _ratio(sample.sums(correction_weights * (sample.responses - predictions)), sample.sums(correction_weights))
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
    terms, freedom = error_terms(sample, predictions)
    return sample.sums(terms**2), freedom


def error_terms(
    sample: Drawn,
    predictions: FloatArray,  # (n_models, n_columns)
) -> tuple[FloatArray, FloatArray]:
    """Return what each item adds to the error of `difference_values`, and the degrees of freedom of their squares.

    Squares of the terms (n_models, n_columns), 0 where missing, sum to the variance of `difference_variances`. Products
    of two models' sum to the covariance of their estimates: so the variance of a difference is the sum of squares of
    the differences, ``V_a + V_b - 2 sum_S t_a t_b``, whichever items each of the two lacks.
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
    terms = residuals * np.sqrt(np.divide(counts, 1.0 - leverage, out=np.zeros(counts.shape), where=is_judged))
    freedom = _ratio(sample.sums(counts) ** 2, sample.sums(counts**2), otherwise=1.0) - 1.0
    return terms, np.maximum(freedom, 0.0)


def moderated(
    sample: Drawn,
    shown: FloatArray,  # (n_models, n_scenarios): Variances as `difference_variances` gives them
    freedom: FloatArray,  # (n_models, n_scenarios)
    expected: FloatArray,  # (n_models, n_scenarios): As `expected_variances` gives them
) -> FloatArray:
    """Variance over samples that does not vanish where a sample happens to show little, (n_models, n_scenarios).

    ``max(V, (f V + 8 V_0) / (f + 8))`` with V what the sample shows and V_0 what was expected (a moderated variance,
    Smyth 2004, section 3), never less than V: predictions may be worse than expected. f is what V is worth in degrees
    of freedom, ``2 / Var(V / sigma^2)``: n - 1, or for right and wrong answers, whose kurtosis is ``1 / (p q) - 3``,
    ``2 n p q / (1 - 4 p q)`` where that is less. Five right answers of five do not show that predictions are right.
    """
    right = _ratio(sample.n_right, sample.n_observed)
    chance = right * (1.0 - right)
    worth = np.minimum(freedom, 2.0 * sample.n_observed * chance / np.maximum(1.0 - 4.0 * chance, 1e-9))
    return leaning(shown, worth, expected)


def leaning(shown: FloatArray, worth: FloatArray, expected: FloatArray) -> FloatArray:
    """Return ``max(V, (f V + 8 V_0) / (f + 8))``, elementwise."""
    result: FloatArray = np.maximum(shown, (worth * shown + PRIOR_FREEDOM * expected) / (worth + PRIOR_FREEDOM))
    return result


def expected_variances(sample: Drawn, variance: FloatArray) -> FloatArray:
    """Variance over samples if answers lie off predictions by these variances, (n_models, n_columns) or fewer.

    ``sum_S (1 - pi_i) (omega_i / pi_i)^2 s_i^2``, (n_models, n_scenarios).
    """
    return sample.sums((1.0 - sample.probabilities) * sample.expansion**2 * variance)


def composite(
    synthetic: FloatArray,  # (n_models, n_scenarios): Predicted, and put right by what was off elsewhere
    direct: FloatArray,  # (n_models, n_scenarios): Put right by what was off in the scenario
    variance: FloatArray,  # (n_models, n_scenarios): Of the direct one, over draws; 0 where nothing was drawn
    apart: FloatArray,  # (n_scenarios,): Mean square of past models' scores about the synthetic one; NaN where unknown
    parts: Drawn,
    *,
    left: FloatArray,  # (n_scenarios,): Weight of the items of which the past models' answers were predicted there
    by_draw: FloatArray,  # (n_models, n_scenarios): Variance of the synthetic one over draws
) -> tuple[FloatArray, FloatArray]:
    """Weigh two estimates of each scenario score, and say how uncertain the result is, both (n_models, n_scenarios).

    ``T = S + g (D - S)`` with ``g = A / (A + v)``. A is four times that of past models, or larger, as far as this
    model's own scenarios lie further apart than theirs: ``sum (D - S)^2 / sum (A + v)``; and no less than what the draw
    leaves of S, which says more of a model that is hard to predict than past models do. The mean square error is
    ``g^2 v + (1 - g)^2 B`` with B the larger of A and ``(D - S)^2``, what this scenario itself shows.
    """
    is_direct = variance > 0.0
    # of a model with fewer answers more is predicted; where nothing was, nobody knows how far that is off
    apart = LEEWAY * apart * np.maximum(parts.unseen_weight / np.where(left > 1e-12, left, np.nan), 1.0) ** 2
    known = np.where(np.isnan(apart), 0.0, apart)
    gap = np.where(is_direct, direct - synthetic, 0.0)
    expected = np.sum(np.where(is_direct, known + variance, 0.0), axis=1)
    further = np.maximum(_ratio(np.sum(gap**2, axis=1), expected, otherwise=1.0), 1.0)
    wanders = np.where(np.isnan(apart), UNKNOWN, np.maximum(known * further[:, None], by_draw))
    share = np.where(is_direct, _ratio(wanders, wanders + variance), 0.0)
    beside = np.where(np.isnan(apart) & is_direct, 0.0, np.maximum(wanders, gap**2))
    square = share**2 * variance + (1.0 - share) ** 2 * beside
    # at most as far off as an even chance of the lowest and the highest score
    square = np.where(is_direct, square, np.minimum(square, parts.unseen_weight**2 / 4.0))
    return synthetic + share * gap, np.where(parts.unseen_weight > 0.0, square, 0.0)


def _centred(sample: Drawn, values: FloatArray, weights: FloatArray, total: FloatArray) -> FloatArray:
    """Values less their weighted mean in each scenario, (n_models, n_columns)."""
    return values - sample.spread_out(_ratio(sample.sums(weights * values), total))


def _ratio(top: FloatArray | float, bottom: FloatArray, *, otherwise: float = 0.0) -> FloatArray:
    """Divide, with a fixed result where the divisor is zero."""
    result: FloatArray = np.divide(top, bottom, out=np.full(np.shape(bottom), otherwise), where=bottom > 0.0)
    return result
