"""Difference estimators of scenario scores from items drawn with known probabilities, and their variances."""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.scenario_sums import scenario_sums
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.intervals import t_reach

SLOPE_SD = 0.3
"""Prior standard deviation, around one, of the slope of responses on predictions: in a small sample the slope stays
near one, that of the item model."""

PSEUDO_OUTCOMES = 1.0
"""Weight, in outcomes of the rarer kind, of the variance that holds if predictions explain nothing."""


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
        result: FloatArray = self.observed * self.weights / self.probabilities
        return result

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
        result: FloatArray = values[:, self.scenario_index]
        return result


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


def tuned_slopes(sample: Drawn, predictions: FloatArray) -> FloatArray:
    """Slope of responses on predictions in each scenario, shrunk to one, (n_models, n_scenarios).

    ``beta = (C_qy + k) / (C_qq + k)`` with ``k = C_ee / (n s^2)``: the normal posterior mean for the prior
    N(1, s^2), s = `SLOPE_SD`, and e = y - q; moments are weighted with ``(1 - pi) (omega / pi)^2``, as items count
    in the variance. The slope that least squares finds makes the control variate's variance smallest, so that a
    useless item model costs nothing in large samples (power tuning: Angelopoulos, Duchi and Zrnic 2023, PPI++).

    Parameters
    ----------
    sample : Drawn
    predictions : (n_models, n_columns)
        q: made without the response they predict, or the slope flatters the item model.
    """
    # (1 - pi) (omega / pi)^2: the weight of a squared residual in the variance, so that the slope minimises it
    weights = (1.0 - sample.probabilities) * sample.expansion**2
    total = sample.sums(weights)
    y = _centred(sample, sample.responses, weights, total)
    q = _centred(sample, predictions, weights, total)
    moments = [_ratio(sample.sums(weights * product), total) for product in (q * q, q * y, (y - q) ** 2)]
    k = _ratio(moments[2], sample.n_observed * SLOPE_SD**2)
    slope = _ratio(moments[1] + k, moments[0] + k, otherwise=1.0)
    # C_qy of a few items can be far off; within [0, 2] the slope is at most one away from its prior mean
    return np.clip(slope, 0.0, 2.0)


def difference_values(
    sample: Drawn, predictions: FloatArray, unseen_predicted: FloatArray, slopes: FloatArray
) -> FloatArray:
    """Estimate scenario scores by the difference estimator, (n_models, n_scenarios).

    ``T = sum_S omega_i y_i + beta sum_U omega_i p_i + W_U sum_S b_i (y_i - beta p_i) / sum_S b_i`` with S the observed
    items, U the others, ``W_U = sum_U omega_i`` and ``b_i = omega_i (1 - pi_i) / pi_i``: p-IRT, and the sample's
    estimate of how far it is off on the unseen items. With beta = 1 and the expected ``W_U = sum_S b_i`` it is
    ``sum_all omega p + sum_S omega (y - p) / pi`` (Cassel, Sarndal and Wretman 1976); the ratio (Hajek 1971) takes a
    constant error of the predictions out as well.

    Parameters
    ----------
    sample : Drawn
    predictions : (n_models, n_columns)
        p of the drawn items.
    unseen_predicted : (n_models, n_scenarios)
        ``sum_U omega_i p_i``.
    slopes : (n_models, n_scenarios)
        beta.
    """
    # b_i = (1 - pi_i) omega_i / pi_i; `off` is the mean of y - beta p that the sample estimates for the unseen items
    correction_weights = (1.0 - sample.probabilities) * sample.expansion
    off = _ratio(
        sample.sums(correction_weights * (sample.responses - sample.spread_out(slopes) * predictions)),
        sample.sums(correction_weights),
    )
    left = sample.unseen_weight
    return np.where(left > 0.0, sample.known + slopes * unseen_predicted + left * off, sample.known)


def difference_variances(sample: Drawn, predictions: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance over samples of `difference_values` and its degrees of freedom, each (n_models, n_scenarios).

    ``V = sum_S (1 - pi_i) (omega_i / pi_i)^2 e_i^2 / (1 - h_i)`` with e the residuals ``y - beta p`` less their mean
    with weights ``b_i = omega_i (1 - pi_i) / pi_i``, and ``h_i = b_i / sum_S b`` the leverage of a residual on that
    mean. It is the approximation that needs no joint probabilities (Hajek 1964; Deville 1999; Matei and Tille 2005),
    good for designs of high entropy such as systematic sampling in random order, with the small-sample correction of
    MacKinnon and White (1985, HC2) in place of a common n / (n - 1), as weights may be very unequal. It equals
    ``(1 - n/N) s_e^2 / n`` for simple random sampling; for stratified samples it is on the large side.

    Degrees of freedom are ``(sum c)^2 / sum c^2 - 1``, ``c_i = (1 - pi_i) (omega_i / pi_i)^2`` (Satterthwaite 1946, for
    residuals of one variance): n - 1 for equal probabilities; items with inclusion probability one add none.

    Parameters
    ----------
    sample : Drawn
    predictions : (n_models, n_columns)
    slopes : (n_models, n_scenarios)
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
    residuals: FloatArray = sample.responses - sample.spread_out(slopes) * predictions
    residuals = _centred(sample, residuals, correction_weights, total)
    counts = correction_weights * sample.expansion  # c_i = (1 - pi_i) (omega_i / pi_i)^2
    is_judged = leverage < 1.0 - 1e-9  # a single item is its own mean: its residual is zero
    squares = np.divide(counts * residuals**2, 1.0 - leverage, out=np.zeros(counts.shape), where=is_judged)
    freedom = _ratio(sample.sums(counts) ** 2, sample.sums(counts**2), otherwise=1.0) - 1.0
    return sample.sums(squares), np.maximum(freedom, 0.0)


def guarded_variances(
    sample: Drawn, values: FloatArray, variances: FloatArray, freedom: FloatArray, noise_ratio: FloatArray
) -> FloatArray:
    """Variances that do not vanish where a sample shows hardly any variation, (n_models, n_scenarios).

    ``(m V + V_0) / (m + 1)`` with ``V_0 = r u sum_S (1 - pi_i) (omega_i / pi_i)^2`` the variance if predictions
    explained nothing, u the variance of a binary response with the smoothed mean, and m the outcomes of the rarer
    kind: five right answers of five do not show that the item model is right, and the variance is V_0; with many
    outcomes of both kinds it is V.

    Parameters
    ----------
    sample : Drawn
    values, variances, freedom : (n_models, n_scenarios)
    noise_ratio : (n_scenarios,)
        r: how much less than binary ones responses vary; at most one.
    """
    return _mixed(variances, _reference(sample, values, noise_ratio), _informative(sample, freedom))


def overall_variances(
    sample: Drawn,
    values: FloatArray,
    variances: FloatArray,
    freedom: tuple[FloatArray, FloatArray],
    *,
    noise_ratio: FloatArray,
    scenario_weights: FloatArray,
) -> FloatArray:
    """Variance of the overall score that does not vanish where the samples show hardly any variation, (n_models,).

    ``(M V + V_0) / (M + 1)`` as for a scenario (`guarded_variances`), with ``V = sum_j w_j^2 V_j``,
    ``V_0 = sum_j a_j``, ``a_j = w_j^2 V_0j`` and ``M = sum_j m_j a_j / max_j a_j``, at most the degrees of freedom of
    V: all scenarios together show how well predictions explain answers, each as far as it matters for the score. The
    sum of the guarded variances would be guarded once a scenario: from 30 items in six scenarios its intervals were a
    quarter wider than they need be.

    Parameters
    ----------
    sample : Drawn
    values, variances : (n_models, n_scenarios)
        Variances as `difference_variances` gives them.
    freedom : two arrays
        Degrees of freedom of the scenarios, (n_models, n_scenarios), and of the overall score, (n_models,).
    noise_ratio, scenario_weights : (n_scenarios,)
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
    result: FloatArray = noise_ratio * unit_variances(values, sample.n_observed, np.zeros(values.shape)) * expansion
    return result


def _informative(sample: Drawn, freedom: FloatArray) -> FloatArray:
    """m: few degrees of freedom say as little about V as few outcomes of the rarer kind, (n_models, n_scenarios)."""
    result: FloatArray = np.minimum(n_rarer(sample.n_right, sample.n_observed), freedom)
    return result


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
    result: FloatArray = total / (rarer + PSEUDO_OUTCOMES)
    return result


def score_intervals(
    estimates: tuple[FloatArray, FloatArray, FloatArray], n_right: FloatArray, n_observed: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Interval of each estimate, inside [0, 1], from Wilson's score interval at the effective sample size.

    The effective sample size is that of a binomial mean of the same variance, ``n* = u / V`` (Kott and Carr 1997,
    Korn and Graubard 1998), t quantiles stand for normal ones, and the end points solve
    ``(T - x)^2 = t^2 x (1 - x) / n*``. Wide of zero and one it is ``T +- t sqrt(V)``; near them it leans inwards,
    whereas the symmetric interval does not and covers too seldom there. Where every response was right the interval
    reaches one, since no response contradicts that; likewise zero.

    Parameters
    ----------
    estimates : three arrays (n_models, n_targets)
        Values, variances, degrees of freedom.
    n_right, n_observed : (n_models, n_targets)
        Sum and number of the observed responses.
    level : float
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
    result: FloatArray = values - sample.spread_out(_ratio(sample.sums(weights * values), total))
    return result


def _ratio(top: FloatArray | float, bottom: FloatArray, *, otherwise: float = 0.0) -> FloatArray:
    """Divide, with a fixed result where the divisor is zero."""
    result: FloatArray = np.divide(top, bottom, out=np.full(np.shape(bottom), otherwise), where=bottom > 0.0)
    return result
