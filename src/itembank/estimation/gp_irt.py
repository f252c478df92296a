"""gp-IRT: the weighted mean and p-IRT, mixed by how far each can be trusted (tinyBenchmarks eq. 4.4)."""

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known


def gp_irt(weighted: FloatArray, p_irt: FloatArray, sample_share: FloatArray) -> FloatArray:
    """Return ``lambda T_w + (1 - lambda) T_p`` (tinyBenchmarks eq. 4.4), (n_models, n_scenarios).

    Where nothing was observed the weighted mean is NaN and lambda 0: p-IRT alone is left.
    """
    mixed: FloatArray = p_irt + sample_share * (np.where(np.isnan(weighted), p_irt, weighted) - p_irt)
    return mixed


def sample_share(
    bias: FloatArray, response_variance: FloatArray, n_effective: FloatArray, factor: FloatArray
) -> FloatArray:
    """gp-IRT's lambda, ``b^2 / (b^2 + v)`` with ``v = sigma^2 / (k n)`` (tinyBenchmarks 4.2).

    The best mixture of an unbiased estimate of variance v and one of bias b without variance (Song 1988).

    Parameters
    ----------
    bias : (n_scenarios,)
        b: mean absolute error of the item model's scenario score.
    response_variance : (n_scenarios,)
        sigma^2: mean variance of the responses within the scenario.
    n_effective : (n_models, n_scenarios)
        n: observed items of a scenario; of a random sample with unequal weights ``(sum w)^2 / sum w^2``, as
        the variance of its weighted mean is ``sigma^2 sum w^2 / (sum w)^2``. Lambda is 0 where it is 0.
    factor : (n_scenarios,)
        k: 1 for a random sample, 4 for anchor points (tinyBenchmarks), or estimated.

    Returns
    -------
    (n_models, n_scenarios)
        In [0, 1]; 0 where both b and v are 0, since then p-IRT is exact.
    """
    # an observed item counts as at least one effective item; without any, v is infinite and lambda zero
    variance = np.where(n_effective > 0.0, response_variance / (factor * np.maximum(n_effective, 1.0)), np.inf)
    total = bias**2 + variance  # (n_models, n_scenarios)
    return np.divide(bias**2, total, out=np.zeros(total.shape), where=total > 0.0)


def estimated_factor(
    weighted: FloatArray, scores: FloatArray, response_variance: FloatArray, n_selected: IntArray
) -> FloatArray:
    """Measured k: ``(sigma^2 / n) / mean_l (T_lj - Z_lj)^2`` over the calibration models, (n_scenarios,).

    Parameters
    ----------
    weighted, scores : (n_models, n_scenarios)
        The calibration models' weighted anchor estimates and full scores; NaN is left out.
    response_variance : (n_scenarios,)
    n_selected : (n_scenarios,)
        Items of the selection in each scenario.

    Returns
    -------
    (n_scenarios,)
        Infinite where the anchors made no error; 1 where no calibration model has both scores.
    """
    error = mean_where_known((weighted - scores) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = response_variance / (n_selected * error)
    return np.where(np.isnan(factor), 1.0, factor)
