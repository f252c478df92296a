"""The item model's posterior of the full scores, from which every method's standard error comes."""

from dataclasses import dataclass

import numpy as np

from itembank.estimation.predictions import PredictedSums
from itembank.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class ScorePosterior:
    """Mean and covariance of the scenario scores given the observed responses."""

    mean: FloatArray  # (n_models, n_scenarios): The p-IRT estimate
    # (n_models, n_scenarios, n_scenarios): Scenarios share the uncertain ability, so their scores correlate.
    covariance: FloatArray


def score_posterior(
    known: FloatArray, unseen: PredictedSums, ability_covariance: FloatArray, noise_ratio: FloatArray
) -> ScorePosterior:
    """Posterior of the scenario scores, to first order in ability.

    ``Z_j = sum_S omega_i Y_i + sum_U omega_i Y_i`` with S observed and U not, so that

    ``E[Z_j] = sum_S omega_i Y_i + sum_U omega_i p_i``  (tinyBenchmarks eq. 4.3), and
    ``Cov[Z_j, Z_k] = G_j' C G_k + 1[j = k] r_j sum_U omega_i^2 p_i (1 - p_i)``,

    with ``G_j = sum_U omega_i dp_i/dtheta`` and C the covariance of ability. Item parameters count as known.

    Parameters
    ----------
    known : (n_models, n_scenarios)
        ``sum_S omega_i Y_i``, raw responses.
    unseen : PredictedSums
        Over the items not observed, at the estimated ability.
    ability_covariance : (n_models, n_dims, n_dims)
        C.
    noise_ratio : (n_scenarios,)
        r: variance of raw responses around the item model over ``p (1 - p)``; one for binary responses.
    """
    # ability is common to all scenarios (first term, with covariances between scenarios); noise is independent given
    # ability (second term, on the diagonal only). Observed items are known and add nothing to either.
    gradient = unseen.gradient
    covariance = gradient @ ability_covariance @ gradient.transpose(0, 2, 1)
    diagonal = np.arange(known.shape[1])
    covariance[:, diagonal, diagonal] += noise_ratio * unseen.noise
    return ScorePosterior(known + unseen.mean, covariance)


def standard_error(value: FloatArray, posterior_mean: FloatArray, posterior_variance: FloatArray) -> FloatArray:
    """Root of the posterior expectation of ``(Z - T)^2`` for an estimate T: ``sqrt(V + (T - m)^2)``.

    An estimate other than the posterior mean m is charged for its distance from it.
    """
    result: FloatArray = np.sqrt(np.maximum(posterior_variance, 0.0) + (value - posterior_mean) ** 2)
    return result
