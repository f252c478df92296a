"""Moments of weighted sums of responses under the item model, scenario by scenario."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy

from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.stable import sigmoid

LEAST_CHANCE = 0.02
"""Of a right and of a wrong answer, where what to expect of it is asked."""
FEW_VALUES = 2**16
"""Up to so many values, building the sparse matrix takes longer than the sums themselves."""


def scenario_sums(values: FloatArray, scenario_index: IntArray, n_scenarios: int) -> FloatArray:
    """Sum values (n_models, n_items) over the items of each scenario, (n_models, n_scenarios)."""
    n_models, n_items = values.shape
    if values.size <= FEW_VALUES:
        cell = n_scenarios * np.arange(n_models)[:, None] + scenario_index
        sums = np.bincount(cell.ravel(), weights=values.ravel(), minlength=n_models * n_scenarios)
        return sums.reshape(n_models, n_scenarios).astype(np.float64)
    onto = scipy.sparse.csr_array(
        (np.ones(n_items), (scenario_index, np.arange(n_items))), shape=(n_scenarios, n_items)
    )
    result: FloatArray = (onto @ values.T).T
    return result


def scenario_items(scenario_index: IntArray, n_scenarios: int) -> list[IntArray]:
    """Positions of the items of each scenario."""
    order = np.argsort(scenario_index, kind="stable")
    ends = np.cumsum(np.bincount(scenario_index, minlength=n_scenarios))
    return np.split(order, ends[:-1])


@dataclass(frozen=True, slots=True)
class PredictedSums:
    """Moments of ``sum_i omega_i Y_i`` over some items of each scenario, given ability."""

    mean: FloatArray  # (n_models, n_scenarios): ``sum_i omega_i p_i``
    # (n_models, n_scenarios): Variance given ability, ``sum_i omega_i^2 p_i (1 - p_i)``, of levels with their own
    # variance: responses are independent given ability.
    noise: FloatArray
    gradient: FloatArray  # (n_models, n_scenarios, n_dims): ``sum_i omega_i dp_i / dtheta``

    def __sub__(self, other: "PredictedSums") -> "PredictedSums":
        """Moments of the sum over the items that are in this one and not in the other."""
        return PredictedSums(
            self.mean - other.mean,
            np.maximum(self.noise - other.noise, 0.0),  # rounding must not make a variance negative
            self.gradient - other.gradient,
        )


@dataclass(frozen=True, slots=True)
class WeightedItems:
    """Items with their weights, those of a scenario side by side, for sums that are taken again and again."""

    order: IntArray  # (n_items,): Which item is where
    begins: tuple[int, ...]  # Where the items of each scenario begin, and the end of the last
    loadings: FloatArray  # (n_items, n_dims)
    intercept: FloatArray  # (n_items,)
    # (lower, rise), each (n_items,),: Lower asymptote and its distance to the upper one; None where every curve rises
    # from 0 to 1.
    asymptotes: tuple[FloatArray, FloatArray] | None
    weights: FloatArray  # (n_items,): omega and its square
    squares: FloatArray  # (n_items,)
    weighted: FloatArray  # (n_items, n_dims): ``omega_i a_i``

    @classmethod
    def create(
        cls, parameters: ItemParameters, weights: FloatArray, scenario_index: IntArray, n_scenarios: int
    ) -> Self:
        """Sort items by scenario; `weights` are omega, (n_items,)."""
        groups = scenario_items(scenario_index, n_scenarios)
        order = np.concatenate(groups)
        sizes = [len(group) for group in groups]
        of, omega = parameters.take(order), weights[order]
        is_plain = not np.any(of.lower_asymptote) and bool(np.all(of.upper_asymptote == 1.0))
        return cls(
            order,
            (0, *np.cumsum(sizes).tolist()),
            of.loadings,
            of.intercept,
            None if is_plain else (of.lower_asymptote, of.upper_asymptote - of.lower_asymptote),
            omega,
            omega**2,
            omega[:, None] * of.loadings,
        )

    def with_curves(
        self,
        curves: FloatArray,  # (n_curves, 4): Loading, intercept, weight, weight of the variance
        scenario_index: IntArray,  # (n_curves,)
    ) -> Self:
        """Add curves of one ability in place of further items (`curves_of`); sums are then over all, unmasked."""
        scenarios = np.arange(len(self.begins) - 1)
        index = np.concatenate([np.repeat(scenarios, np.diff(self.begins)), scenario_index])
        order = np.argsort(index, kind="stable")
        joined = {
            "loadings": (self.loadings, curves[:, :1]),
            "intercept": (self.intercept, curves[:, 1]),
            "weights": (self.weights, curves[:, 2]),
            "squares": (self.squares, curves[:, 3]),
            "weighted": (self.weighted, curves[:, 2:3] * curves[:, :1]),
        }
        arrays: dict[str, Any] = {name: np.concatenate(pair)[order] for name, pair in joined.items()}
        return replace(self, **arrays, begins=(0, *np.cumsum(np.bincount(index, minlength=scenarios.size)).tolist()))


REACH = 10.0
"""Abilities up to which stand-ins are as the items: posterior modes lie far within."""
N_CANDIDATES = 1000


def curves_of(
    loadings: FloatArray,  # (n_items,): Of items of one ability without asymptotes
    intercept: FloatArray,  # (n_items,)
    weights: FloatArray,  # (n_items,): omega
) -> FloatArray:
    """Find a few curves whose weighted sums are those of many items, at any ability, (n_curves, 4).

    Columns are loading, intercept, v and u with ``sum v p = sum_i omega_i p_i`` and ``sum u p (1 - p) = sum_i
    omega_i^2 p_i (1 - p_i)``. Curves of one ability are so alike that some seventy of the items, with other weights,
    make the sums to 13 digits (non-negative least squares over a grid of abilities).
    """
    from scipy.optimize import nnls  # noqa: PLC0415 (takes longer to import than an estimate)

    places = np.linspace(0, loadings.size - 1, min(loadings.size, N_CANDIDATES)).astype(np.int64)
    some = np.unique(np.concatenate([np.argsort(values, kind="stable")[places] for values in (loadings, intercept)]))
    theta = np.linspace(-REACH, REACH, 201)[:, None]
    p = sigmoid(theta * loadings + intercept)
    result = [np.zeros((some.size, 1)), np.zeros((some.size, 1))]
    for number, (values, omega) in enumerate(((p, weights), (p * (1.0 - p), weights**2))):
        wanted = values @ omega
        scale = float(wanted.max())
        result[number][:, 0] = scale * nnls(values[:, some], wanted / scale, maxiter=100 * some.size)[0]
    table = np.column_stack([loadings[some], intercept[some], *result])
    return table[(table[:, 2:] > 0.0).any(axis=1)]


def predicted_sums(
    parameters: ItemParameters,  # Of n_items items
    weights: FloatArray,  # (n_items,): omega
    scenario_index: IntArray,  # (n_items,)
    n_scenarios: int,
    theta: FloatArray,  # (n_models, n_dims)
    *,
    mask: BoolArray | None = None,  # (n_models, n_items): Which items to sum over; all by default
) -> PredictedSums:
    """Moments of the weighted sums of responses over each scenario.

    With ``s = sigmoid(a . theta + c)``: ``p = g + (u - g) s`` and ``dp/dtheta = (u - g) s (1 - s) a``.
    """
    return sums_at(WeightedItems.create(parameters, weights, scenario_index, n_scenarios), theta, mask=mask)


def sums_at(items: WeightedItems, theta: FloatArray, *, mask: BoolArray | None = None) -> PredictedSums:
    """Return the same moments for items sorted before; `mask` (n_models, n_items) is in the order before sorting."""
    shape = (theta.shape[0], len(items.begins) - 1)
    mean, noise, gradient = np.zeros(shape), np.zeros(shape), np.zeros((*shape, theta.shape[1]))
    for scenario, (begin, end) in enumerate(zip(items.begins[:-1], items.begins[1:], strict=True)):
        block = slice(begin, end)
        x = theta @ items.loadings[block].T + items.intercept[block]
        p = sigmoid(x)
        slope = spread = p * (1.0 - p)  # dp/d eta = s (1 - s) is the variance p (1 - p) as well
        if items.asymptotes is not None:
            lower, rise = items.asymptotes[0][block], items.asymptotes[1][block]
            p = lower + rise * p
            slope, spread = rise * slope, p * (1.0 - p)
        if mask is not None:
            seen = mask[:, items.order[block]]
            p, slope, spread = p * seen, slope * seen, spread * seen
        mean[:, scenario] = p @ items.weights[block]
        noise[:, scenario] = spread @ items.squares[block]
        gradient[:, scenario] = slope @ items.weighted[block]
    return PredictedSums(mean, noise, gradient)


def score_posterior(
    known: FloatArray,  # (n_models, n_scenarios): ``sum_S omega_i Y_i``, raw responses
    unseen: PredictedSums,  # Over the items not observed, at the estimated ability
    ability_covariance: FloatArray,  # (n_models, n_dims, n_dims): C
    # (n_scenarios,): r: variance of raw responses around the item model over ``p (1 - p)``; one for binary responses
    noise_ratio: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean (p-IRT) and covariance of the scenario scores, to first order in ability.

    ``Z_j = sum_S omega_i Y_i + sum_U omega_i Y_i`` with S observed and U not, so that

    ``E[Z_j] = sum_S omega_i Y_i + sum_U omega_i p_i``  (tinyBenchmarks eq. 4.3), and
    ``Cov[Z_j, Z_k] = G_j' C G_k + 1[j = k] r_j sum_U omega_i^2 p_i (1 - p_i)``,

    with ``G_j = sum_U omega_i dp_i/dtheta`` and C the covariance of ability. Item parameters count as known.
    """
    # ability is common to all scenarios (first term, with covariances between scenarios); noise is independent given
    # ability (second term, on the diagonal only). Observed items are known and add nothing to either.
    gradient = unseen.gradient
    covariance = gradient @ ability_covariance @ gradient.transpose(0, 2, 1)
    diagonal = np.arange(known.shape[1])
    covariance[:, diagonal, diagonal] += noise_ratio * unseen.noise
    return known + unseen.mean, covariance


def standard_error(value: FloatArray, posterior_mean: FloatArray, posterior_variance: FloatArray) -> FloatArray:
    """Root of the posterior expectation of ``(Z - T)^2`` for an estimate T: ``sqrt(V + (T - m)^2)``.

    An estimate other than the posterior mean m is charged for its distance from it.
    """
    return np.sqrt(np.maximum(posterior_variance, 0.0) + (value - posterior_mean) ** 2)
