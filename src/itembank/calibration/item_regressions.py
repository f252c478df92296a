"""What `item_regression` returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.calibration.pooled_regression import PooledRegression
from itembank.numerics.arrays import FloatArray
from itembank.responses.item_features import ItemFeatures
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class ItemRegression(Tabular):
    """Result of `item_regression`.

    Attributes
    ----------
    features : ItemFeatures
        What is known of items as numbers.
    centre : (n_features,)
        Mean of the features over the items that were fitted.
    fit : PooledRegression
        Of the intercepts, in logits: more is easier.
    explained : float
        Fraction of the variance of intercepts that goes with the features.
    """

    features: ItemFeatures
    centre: FloatArray
    fit: PooledRegression
    explained: float

    def rows(self) -> list[dict[str, Any]]:
        """One record a feature: how much easier it makes an item, in logits, with the standard error.

        A category is held against the average item, a number against one lower by a standard deviation.
        """
        contrasts = self.features.contrasts
        effects = contrasts @ self.fit.weights
        errors = np.sqrt(np.sum((contrasts @ self.fit.weight_covariance) * contrasts, axis=1))
        found = zip(self.features.names, effects.tolist(), errors.tolist(), strict=True)
        return [
            {"column": column, "level": level, "effect": effect, "standard_error": error}
            for (column, level), effect, error in found
        ]

    def predict(self, items: pl.DataFrame) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the intercepts of items that nobody has answered, (n_items,) each.

        Parameters
        ----------
        items : DataFrame
            With the columns that the bank was calibrated with.
        """
        values = self.features.of(items) - self.centre
        spread = np.sum((values @ self.fit.weight_covariance) * values, axis=1) + self.fit.residual_variance
        return self.fit.mean + values @ self.fit.weights, np.sqrt(spread)
