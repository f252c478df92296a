"""What the item model and the factor model expect of new models' scores, and how large an error to expect of these."""

from typing import NamedTuple, Self

import numpy as np

from itembank.bank.bank_factors import bank_factor_model
from itembank.bank.banks import Bank
from itembank.estimation.out_of_fold import grown
from itembank.estimation.point import Known, target_weights
from itembank.estimation.posterior import standard_error
from itembank.estimation.regression.factor import predict_factor
from itembank.estimation.response_summary import posterior_moments
from itembank.irt.linear_gaussian import FactorModel
from itembank.numerics.arrays import FloatArray, IntArray

LOOSE = 0.1
"""Discrepancy of the second factor model, one of the default's members: new models may be of another kind."""


class FactorModels(NamedTuple):
    """Both factor models of a bank, and the scores that they are to predict."""

    usual: FactorModel  # With the discrepancy that calibration models show (`Factor`)
    loose: FactorModel  # With discrepancy `LOOSE`
    weights: FloatArray  # (n_items, n_targets): Of the items in each score
    # pair of (n_factors, n_targets): Of both models' factors on each score, for `predict_factor`.
    levers: tuple[FloatArray, FloatArray]

    @classmethod
    def of_bank(cls, bank: Bank, weights: FloatArray) -> Self:
        """Make them for scores that weigh items so."""
        usual, loose = (bank_factor_model(bank, discrepancy=each) for each in ("auto", LOOSE))
        return cls(usual, loose, weights, (usual.loadings.T @ weights, loose.loadings.T @ weights))


class Expectations(NamedTuple):
    """Scores of n_models models on n_targets targets, by the models that know how past models answered."""

    mean: FloatArray  # (n_models, n_targets): By the item model: p-IRT and its posterior variance
    variance: FloatArray  # (n_models, n_targets)
    # (n_models, n_targets): By the factor model with the discrepancy that calibration models show (`Factor`).
    factor_mean: FloatArray
    factor_variance: FloatArray  # (n_models, n_targets)
    loose_mean: FloatArray  # (n_models, n_targets): By the factor model with discrepancy `LOOSE`
    # (n_models, n_targets): How far the answers lie from what the factor model expects (`FactorPrediction.misfit`): the
    # same for all targets of a model, 1 on average for models like those of the calibration.
    misfit: FloatArray

    @classmethod
    def of(cls, known: Known) -> Self:
        """Gather them from the responses."""
        bank, observations = known.bank, known.observations
        factors = FactorModels.of_bank(bank, target_weights(bank))
        moments = posterior_moments(bank.targets, known.summary)
        return cls.by(factors, observations.positions, observations.responses, moments)

    @classmethod
    def by(
        cls,
        factors: FactorModels,
        positions: IntArray,
        responses: FloatArray,
        moments: tuple[FloatArray, FloatArray],
    ) -> Self:
        """Gather them from raw responses (n_models, n_columns) to items, and mean and variance by the item model."""
        usual, loose = (
            predict_factor(model, positions, factors.weights, responses, lever=lever)
            for model, lever in zip((factors.usual, factors.loose), factors.levers, strict=True)
        )
        misfit = np.broadcast_to(usual.misfit[:, None], usual.value.shape)
        return cls(*moments, usual.value, usual.variance, loose.value, misfit)

    @property
    def means(self) -> FloatArray:
        """All three means, (3, n_models, n_targets)."""
        return np.stack([self.mean, self.factor_mean, self.loose_mean])

    def take(self, models: IntArray) -> "Expectations":
        """Return those of some models."""
        return Expectations(*(array[models] for array in self))

    def targets(self, columns: IntArray) -> "Expectations":
        """Return those on some of the targets."""
        return Expectations(*(array[:, columns] for array in self))

    def standard_error(self, value: FloatArray) -> FloatArray:
        """Return what the item model expects of the errors of estimates, (n_models, n_targets)."""
        return standard_error(value, self.mean, self.variance)

    def error_scale(self, value: FloatArray, tail: float) -> FloatArray:
        """Return the expected size of errors up to a factor, which past errors give, (n_models, n_targets).

        ``sqrt((v + d^2 + D v_f) max(1, D / tail))``: v and v_f are the posterior variances of the item model and of the
        factor model, d the root mean square distance of the estimate T from the three means, and D the misfit. A model
        that answers unlike past models is known worse than models that are fitted to past ones say: among the answers
        that are seen, the factor model's squared errors are D times as large as it expects. Neither truth nor other
        models' estimates enter.

        Parameters
        ----------
        value : (n_models, n_targets)
            T.
        tail : float
            Misfit from which errors grow faster; infinite where calibration models show no such thing (`with_tail`).
        """
        disagreement = np.mean((self.means - value) ** 2, axis=0)
        spread = np.maximum(self.variance, 0.0) + disagreement + self.misfit * np.maximum(self.factor_variance, 0.0)
        return grown(np.sqrt(spread), self.misfit, tail)
