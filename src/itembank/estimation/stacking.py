"""Weights that combine the estimates of several methods."""

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.numerics.newton import non_negative_minimum


def stack_weights(errors: FloatArray, *, prior_models: float) -> FloatArray:
    """Weights w that minimise ``w' (E'E + k D) w`` with ``w >= 0`` and ``sum w = 1``.

    E are the methods' errors on models they have not seen, D the diagonal of ``E'E / n_models`` and k `prior_models`:
    the covariance of the errors is shrunk to its diagonal, under which the weights are proportional to ``1 / D``.
    So with few models no method is dropped by chance, and a bad method still gets a small weight.

    Parameters
    ----------
    errors : (n_models, n_members)
        Rows with NaN are left out; so is a method (weight 0) that has NaN for half or more of the models that any
        method has an error for.
    prior_models : float

    Returns
    -------
    (n_members,)
    """
    weights = np.zeros(errors.shape[1])
    errors = errors[~np.isnan(errors).all(axis=1)]  # nothing is known of a model whose score is not
    usable = np.isnan(errors).sum(axis=0) < 0.5 * errors.shape[0]
    if not usable.any():
        return np.full(errors.shape[1], 1.0 / errors.shape[1])
    known = errors[:, usable]
    known = known[~np.isnan(known).any(axis=1)]
    size = np.sqrt(np.mean(known**2, axis=0)) if known.shape[0] else np.ones(known.shape[1])
    largest = size.max()
    if largest == 0.0:  # all methods are exact
        weights[usable] = 1.0 / usable.sum()
        return weights
    # an exact method gets a small size, by which can be divided
    size = np.maximum(size, 1e-6 * largest)
    # with every error in units of its method's size, E'E + k D is a correlation matrix plus k: always positive definite
    relative = known / size
    gram = relative.T @ relative + prior_models * np.eye(size.size)
    # The best weights are proportional to what minimises w'Gw / 2 - sum w: along a direction u of sum one,
    # t^2 g / 2 - t is least at t = 1 / g. There it is -1 / (2 g), which is the lower the smaller g = u'Gu is.
    solution = non_negative_minimum(gram, largest / size) / size
    weights[usable] = solution / solution.sum()
    return weights


def combined(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mean of several methods' estimates; where one is NaN the others' weights are rescaled.

    Parameters
    ----------
    values : (n_members, n_models, n_targets)
    weights : (n_members, n_targets)

    Returns
    -------
    (n_models, n_targets)
    """
    present = ~np.isnan(values)
    present_weights = present * weights[:, None, :]
    total = present_weights.sum(axis=0)
    result: FloatArray = np.divide(
        np.where(present, values * present_weights, 0.0).sum(axis=0),
        total,
        out=np.full(total.shape, np.nan),
        where=total > 0.0,
    )
    return result


def reconciled(values: FloatArray, variances: FloatArray, scenario_weights: FloatArray) -> FloatArray:
    """Move scenario scores in proportion to their uncertainty, so that they add up to the overall score.

    The overall score is estimated in its own right, and better than by adding up scenarios. The scenario scores nearest
    to the given ones that agree with it, in units of their standard deviations, are
    ``T_j + w_j V_j (T - sum_k w_k T_k) / sum_k w_k^2 V_k``. Scenarios that are certain stay.

    Parameters
    ----------
    values : (n_models, n_scenarios + 1)
        The overall score last.
    variances : (n_models, n_scenarios + 1)
        Of the scores, up to a common factor.
    scenario_weights : (n_scenarios,)

    Returns
    -------
    (n_models, n_scenarios + 1)
        Unchanged where every scenario is certain, or one has no estimate.
    """
    scenarios, overall = values[:, :-1], values[:, -1]
    # Lagrange: minimise sum_j d_j^2 / V_j subject to sum_j w_j d_j = gap; the solution is d_j = gap w_j V_j / sum w^2 V
    adjustments = scenario_weights * np.maximum(variances[:, :-1], 0.0)
    total = adjustments @ scenario_weights
    gap = overall - scenarios @ scenario_weights
    gap = np.divide(gap, total, out=np.zeros(total.shape), where=(total > 0.0) & ~np.isnan(gap))
    return np.column_stack([scenarios + gap[:, None] * adjustments, overall])
