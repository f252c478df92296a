"""Smooth regression of the full score on sub-score and ability (metabench: Kipnis et al. 2024, arXiv 2407.12844)."""

from dataclasses import dataclass

import numpy as np

from itembank.checks import check_whole
from itembank.estimation.estimator_specs import PointSpec
from itembank.estimation.point_methods import Known, target_weights
from itembank.estimation.regressions import Block, solve_blocks
from itembank.estimation.response_summary import summarise_responses
from itembank.methods import Method
from itembank.numerics.arrays import FloatArray
from itembank_rivals.additive import fit_penalised, make_smooth, smooth_columns

SMOOTHNESS = np.logspace(-4.0, 3.0, 8)
"""Penalties of roughness, a model: from following every knot to a straight line."""
SLOPES = np.logspace(-4.0, 1.0, 6)
"""Penalties of the squared slopes of the abilities, a model."""
FEWEST_MODELS = 5
FEWEST_FOR_CURVES = 20


@dataclass(frozen=True, slots=True)
class Metabench(PointSpec):
    """Additive smooth regression of the score on sub-score and ability (metabench, arXiv 2407.12844).

    Attributes
    ----------
    n_knots : int
        Of each smooth, at quantiles of the calibration models. The penalty decides how much of them is used.
    """

    n_knots: int = 6

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("n_knots", self.n_knots, least=2)

    @property
    def learns_scores(self) -> bool:
        """It does."""
        return True


def by_metabench(known: Known, spec: Metabench) -> FloatArray:
    """Additive smooth regression of the score on sub-score and ability."""
    bank, observations = known.bank, known.observations
    same_items = observations.answered_by_calibration_models(bank)
    return predict_metabench(
        *known.for_regression(),
        train_abilities=summarise_responses(bank, same_items).abilities,
        new_abilities=known.summary.abilities,
        column_weights=target_weights(bank)[observations.positions],
        n_knots=spec.n_knots,
    )


METABENCH = Method(Metabench, by_metabench)


def predict_metabench(
    train_responses: FloatArray,
    train_scores: FloatArray,
    new_responses: FloatArray,
    *,
    train_abilities: FloatArray,
    new_abilities: FloatArray,
    column_weights: FloatArray | None = None,
    n_knots: int = 6,
) -> FloatArray:
    """Additive regression ``Z = b + f(sub-score) + sum_d g_d(theta_d)`` with penalised natural cubic splines.

    The sub-score is the weighted mean of the responses that the new model gave, for calibration models too. How
    smooth f and the g_d are, and how far the slopes in theta are drawn to zero, is chosen by generalised
    cross-validation; below 20 models all are straight lines, below 5 the estimate is the mean score.

    Parameters
    ----------
    train_responses : (n_train, n_columns)
    train_scores : (n_train, n_targets)
    new_responses : (n_new, n_columns)
        NaN where missing in all three.
    train_abilities : (n_train, n_dims)
    new_abilities : (n_new, n_dims)
        Both from the responses to the selected items: calibration models whose abilities rest on all items would
        seem to say that ability is better known than it is for the new ones.
    column_weights : (n_columns, n_targets) or None
        Weights of the responses in the sub-score of each target, its scenario's items only; None weighs all alike.
        Where no item that weighs was observed, all count alike.
    n_knots : int
        Of each curve.

    Returns
    -------
    (n_new, n_targets)
        In [0, 1]; NaN for a target that no calibration model has a score for.
    """
    weights = np.ones((train_responses.shape[1], train_scores.shape[1])) if column_weights is None else column_weights

    def solver(train: FloatArray, scores: FloatArray, new: FloatArray, block: Block) -> FloatArray:
        result = np.repeat(scores.mean(axis=0)[None, :], new.shape[0], axis=0)
        if block.columns.size == 0 or scores.shape[0] < FEWEST_MODELS:
            return result
        item_weights = _normalised(weights[np.ix_(block.columns, block.targets)])
        n_used = n_knots if scores.shape[0] >= FEWEST_FOR_CURVES else 2
        abilities = [
            _axis(train_abilities[block.train, dim], new_abilities[block.new, dim], n_used)
            for dim in range(train_abilities.shape[1])
        ]
        for j in range(scores.shape[1]):
            sub_score = _axis(train @ item_weights[:, j], new @ item_weights[:, j], n_used)
            result[:, j] = _additive([sub_score, *abilities], scores[:, j])
        return result

    return solve_blocks(train_responses, train_scores, new_responses, solver)


def _normalised(weights: FloatArray) -> FloatArray:
    """Weights (n_observed, n_targets) that sum to one for each target."""
    total = weights.sum(axis=0)
    return np.asarray(np.where(total > 0.0, weights, 1.0) / np.where(total > 0.0, total, weights.shape[0]))


def _axis(train: FloatArray, new: FloatArray, n_knots: int) -> tuple[FloatArray, FloatArray]:
    """Columns of one smooth for calibration and new models."""
    smooth = make_smooth(train, n_knots)
    return smooth_columns(smooth, train), smooth_columns(smooth, new)


def _additive(axes: list[tuple[FloatArray, FloatArray]], scores: FloatArray) -> FloatArray:
    """Prediction (n_new,) from the columns of the sub-score and of each ability."""
    n_models, n_new = axes[0][0].shape[0], axes[0][1].shape[0]
    # groups: -1 free (mean, slope of the sub-score), 0 curves of the sub-score, 1 curves of abilities, 2 their slopes
    groups = [-1]
    for number, (columns, _) in enumerate(axes):
        groups += [-1 if number == 0 else 2, *[min(number, 1)] * (columns.shape[1] - 1)]
    grids = (SMOOTHNESS * n_models, SMOOTHNESS * n_models, SLOPES * n_models)
    design = np.hstack([np.ones((n_models, 1)), *[train for train, _ in axes]])
    coefficients, _ = fit_penalised(design, scores, np.array(groups), grids)
    result: FloatArray = np.hstack([np.ones((n_new, 1)), *[new for _, new in axes]]) @ coefficients
    return result
