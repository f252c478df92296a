"""Linear regression with pooled weights: those of each column have a normal prior whose precision is learnt.

``y_i ~ N(mu + x_i . w, 1 / u)`` and ``w_k ~ N(0, 1 / tau_g)`` for the features k of column g: ridge regression with a
penalty for each column, or a mixed model. A column that says nothing gets a large tau, and weights of nearly zero.
"""

from dataclasses import dataclass

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

MOST_PRECISION = 1e6
"""Of weights: a thousandth of a logit is nothing."""
MOST_ROUNDS = 1000
TOLERANCE = 1e-6
"""Change of every weight and of the residual standard deviation, in logits, at which the rounds stop."""


@dataclass(frozen=True, slots=True)
class FeatureValues:
    """What is known of n_items items as numbers.

    Attributes
    ----------
    values : (n_items, n_features)
    column : (n_features,)
        Which column of the item table each comes from, numbered from zero.
    """

    values: FloatArray
    column: IntArray

    def take(self, items: IntArray | BoolArray) -> "FeatureValues":
        """Return those of some items."""
        return FeatureValues(self.values[items], self.column)


@dataclass(frozen=True, slots=True)
class PooledRegression:
    """What was found.

    Attributes
    ----------
    mean : float
        mu, at the mean of all features.
    weights : (n_features,)
    weight_covariance : (n_features, n_features)
    residual_variance : float
        ``1 / u``.
    """

    mean: float
    weights: FloatArray
    weight_covariance: FloatArray
    residual_variance: float


def posterior_weights(
    gram: FloatArray, products: FloatArray, residual_precision: float, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of the weights given all precisions.

    Parameters
    ----------
    gram : (n_features, n_features)
        ``X' X`` of centred features.
    products : (n_features,)
        ``X' y``.
    residual_precision : float
        u.
    precision : (n_features,)
        tau of each feature.
    """
    covariance = np.linalg.inv(residual_precision * gram + np.diag(precision))
    return covariance @ (residual_precision * products), covariance


def best_precisions(weights: FloatArray, covariance: FloatArray, column: IntArray) -> FloatArray:
    """``tau_g = n_g / sum_k E[w_k^2]`` over the features of each column, (n_columns,)."""
    squares = np.bincount(column, weights=weights**2 + np.diag(covariance))
    return np.minimum(np.bincount(column) / squares, MOST_PRECISION)


def pooled_regression(values: FloatArray, variances: FloatArray, features: FeatureValues) -> PooledRegression:
    """Fit by EM, the values known up to independent errors.

    Parameters
    ----------
    values, variances : (n_items,)
        y, and the variance of the error of each.
    features : FeatureValues
        X; it is centred here.
    """
    centred, column = features.values - features.values.mean(axis=0), features.column
    gram, products, mean = centred.T @ centred, centred.T @ values, float(values.mean())
    residual_variance = float(values.var() + variances.mean())
    tau: FloatArray = np.ones(int(column.max()) + 1)
    before: FloatArray = np.full(column.shape[0] + 1, np.inf)
    for _ in range(MOST_ROUNDS):
        weights, covariance = posterior_weights(gram, products, 1.0 / residual_variance, tau[column])
        squares = np.sum((values - mean - centred @ weights) ** 2) + variances.sum() + np.sum(covariance * gram)
        residual_variance = float(squares) / values.size
        tau = best_precisions(weights, covariance, column)
        found = np.append(weights, np.sqrt(residual_variance))
        if np.abs(found - before).max() < TOLERANCE:
            break
        before = found
    return PooledRegression(mean, weights, covariance, residual_variance)
