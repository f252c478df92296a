"""The probability that an item has a fault: a logistic regression on the evidence of its answers."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit

from itembank.auditing.item_evidence import ItemEvidence
from itembank.auditing.item_statistics import ItemStatistics
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray

RIDGE = 1.0
"""Precision of the prior of each weight, on features with standard deviation 1."""
N_PASSES = 30
"""Of Newton's method; ten reach the last digit."""


@dataclass(frozen=True, slots=True)
class DefectModel:
    """Log-odds of a fault: ``intercept + features @ weights``."""

    intercept: float
    weights: FloatArray  # (n_features,)

    def probability(self, features: FloatArray) -> FloatArray:
        """Probability of a fault of each item, (n_items,), from features (n_items, n_features)."""
        result: FloatArray = expit(self.intercept + features @ self.weights)
        return result


SIMULATED: Final = DefectModel(-2.229, np.array([0.647, 2.316, 0.653, 0.516]))
"""Learnt from planted faults in simulated answers, with no real label."""


def defect_features(evidence: ItemEvidence, statistics: ItemStatistics) -> FloatArray:
    """Features of the model, (n_items, 4): suspicion, falling slope, the ratio of the keys, best models that fail.

    A likelihood ratio grows with the number of models; its inverse hyperbolic sine is linear near 0 and a logarithm
    further out, so that a hundred models do not outweigh what else is known.
    """
    best_fail = 1.0 - statistics.n_best_right / np.maximum(statistics.n_best, 1)
    return np.stack([evidence.suspicion, -evidence.slope, np.arcsinh(evidence.key_lr), best_fail], axis=1)


def fit_defect_model(features: FloatArray, is_bad: BoolArray) -> DefectModel:
    """Fit the weights by penalised maximum likelihood (Newton's method).

    Parameters
    ----------
    features : (n_items, n_features)
    is_bad : (n_items,)
        Labels; both kinds must occur.
    """
    centre, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-12)
    design = np.column_stack([np.ones(is_bad.size), (features - centre) / scale])
    penalty = np.diag([0.0, *[RIDGE] * features.shape[1]])
    share = (is_bad.sum() + 0.5) / (is_bad.size + 1.0)
    weights = np.zeros(design.shape[1])
    weights[0] = np.log(share / (1.0 - share))
    for _ in range(N_PASSES):
        p = expit(design @ weights)
        gradient = design.T @ (is_bad - p) - penalty @ weights
        curvature = (design * (p * (1.0 - p))[:, None]).T @ design + penalty + 1e-9 * np.eye(weights.size)
        weights = weights + np.linalg.solve(curvature, gradient)
    slopes = weights[1:] / scale
    return DefectModel(float(weights[0] - centre @ slopes), slopes)


def out_of_fold(features: FloatArray, is_bad: BoolArray, fold: IntArray) -> FloatArray:
    """Probability of each item by a model that has not seen its fold, (n_items,).

    Parameters
    ----------
    features : (n_items, n_features)
    is_bad : (n_items,)
    fold : (n_items,)
        Numbers from 0, at least two.
    """
    result = np.empty(is_bad.size)
    for number in range(int(fold.max()) + 1):
        mine = fold == number
        result[mine] = fit_defect_model(features[~mine], is_bad[~mine]).probability(features[mine])
    return result


def rank_quality(score: FloatArray, is_bad: BoolArray) -> float:
    """Area under the ROC curve: the probability that a bad item has a higher score than a good one, ties halved."""
    ordered = np.sort(score[~is_bad])
    below = np.searchsorted(ordered, score[is_bad]) + np.searchsorted(ordered, score[is_bad], side="right")
    return float(below.mean() / (2.0 * ordered.size))


def share_right(score: FloatArray, is_bad: BoolArray, n_first: int) -> float:
    """Share of bad items among the first, expected over the order of equals, so that no order of a file helps."""
    cut = np.sort(score)[::-1][min(n_first, score.size) - 1]
    above, equal = score > cut, score == cut
    n_left = min(n_first, score.size) - above.sum()
    return float((is_bad[above].sum() + n_left * is_bad[equal].mean()) / (above.sum() + n_left))
