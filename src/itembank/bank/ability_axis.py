"""The line through a bank's abilities along which its score rises fastest, and where items and models are on it."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from itembank.bank.banks import Bank, Calibration
from itembank.irt.abilities import Difficulties, expected_difficulties
from itembank.irt.bernoulli import logit, probability
from itembank.irt.families import information_weights
from itembank.numerics.arrays import FloatArray
from itembank.numerics.ties import rounded


@dataclass(frozen=True, slots=True)
class AbilityAxis:
    """The line ``theta = origin + t direction`` from the prior mean to where the overall score rises fastest.

    With S the prior's Cholesky factor and u a unit vector, the direction is ``S u``, so that t counts standard
    deviations of the prior. u follows the mean gradient of the expected overall score, ``sum_i omega_i p_i'  S' a_i``,
    at the calibration models' abilities (of many, some). With one ability the line is the ability itself.
    """

    origin: FloatArray  # (n_dims,)
    direction: FloatArray  # (n_dims,)
    positions: FloatArray  # (n_models,): Of the calibration models on the line, with standard errors
    errors: FloatArray  # (n_models,)

    @classmethod
    def of(cls, bank: Bank) -> Self:
        """Find the line of a bank."""
        calibration, parameters = bank.calibration, bank.parameters
        factor = np.linalg.cholesky(calibration.prior.covariance)
        theta = calibration.prior.mean[None, :]
        if calibration.abilities.shape[0]:  # at 60 of them, evenly spread by ability, whatever the order of the models
            ordered = calibration.abilities[np.lexsort(rounded(calibration.abilities).T)]
            theta = ordered[:: -(-ordered.shape[0] // 60)]
        lower, upper = parameters.lower_asymptote, parameters.upper_asymptote
        p = probability(parameters, theta)  # (n_models, n_items)
        rises = (p - lower) * (upper - p) / np.maximum(upper - lower, np.finfo(np.float64).tiny)
        rise = factor.T @ ((bank.targets.overall_weights * rises.mean(axis=0)) @ parameters.loadings)
        length = float(np.linalg.norm(rise))
        unit = rise / length if length > 0.0 else np.eye(rise.shape[0])[0]
        white = np.linalg.solve(factor, (calibration.abilities - calibration.prior.mean).T).T  # (n_models, n_dims)
        across = np.linalg.solve(factor.T, unit)
        variance = np.einsum("i,nij,j->n", across, calibration.ability_covariance, across)
        return cls(calibration.prior.mean, factor @ unit, white @ unit, np.sqrt(variance))

    def grid(self, n_points: int) -> FloatArray:
        """Return places from the weakest calibration model to the strongest, at least from -3 to 3, (n_points,)."""
        reach = max(3.0, float(np.abs(self.positions).max(initial=0.0)))
        return np.linspace(-reach, reach, n_points)

    def slopes(self, calibration: Calibration) -> FloatArray:
        """How fast each item's logit rises along the line, (n_items,)."""
        return calibration.parameters.loadings @ self.direction

    def difficulties(self, calibration: Calibration) -> Difficulties:
        """Places on the line at which the items' logits are zero, with standard errors."""
        parameters, n_dims = calibration.parameters, calibration.n_dims
        onto = np.zeros((2, n_dims + 1))  # (slope, intercept on the line) from (loadings, intercept)
        onto[0, :n_dims], onto[1, :n_dims], onto[1, n_dims] = self.direction, self.origin, 1.0
        covariance = np.einsum("ai,nij,bj->nab", onto, calibration.item_covariance, onto)
        intercept = parameters.loadings @ self.origin + parameters.intercept
        return expected_difficulties(self.slopes(calibration), intercept, covariance)

    def information(self, calibration: Calibration, grid: FloatArray) -> FloatArray:
        """Information of each item on t, of counts that of one trial, (n_grid, n_items): ``w (a . S u)^2``."""
        parameters = calibration.parameters
        theta = self.origin + grid[:, None] * self.direction  # (n_grid, n_dims)
        return information_weights(parameters, logit(parameters, theta)) * self.slopes(calibration) ** 2
