"""Item parameters where past models are too few to fit an item model to, from none to nine; and known ones."""

import numpy as np
import polars as pl
from scipy.special import expit, logit, polygamma

from itembank.bank.banks import FEW_MODELS, KNOWN_PARAMETERS, Calibration
from itembank.errors import DataError, ParameterError, shown
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix

DIFFICULTY_PRIOR = "difficulty_prior"
"""Column of the item table: difficulty in logits for an average model, from whatever source."""
PRIOR_ANSWERS = 1.5
"""How many past answers the scenario's mean counts for in an item's chance of success.

With rho the correlation of two models' answers to the items of a scenario it is ``(1 - rho) / rho``: rho is 0.28 on
BFCL, 0.37 on MMLU-Pro, 0.48 on SWE-bench, 0.39 to 0.68 on the scenarios of Open LLM Leaderboard v1.
"""
SMALLEST_MEAN = 0.02
"""A scenario that all past models solved, or failed, is taken to have a mean this far from one, or zero."""


def calibration_of_few(responses: ResponseMatrix, scenario_index: IntArray) -> Calibration:
    """Guess item parameters from the answers of none or few models, and from `difficulty_prior` where it is.

    The chance that an average model solves item i is the mean of a beta distribution: ``p_i = (k_i + c q_i) /
    (n_i + c)`` for k_i of n_i past models that solved it, q_i the mean of its scenario (or the logistic function of
    ``-difficulty_prior``) and c = `PRIOR_ANSWERS`. Items have slope 1 and intercept ``logit(p_i)``. Estimates from so
    little must not rest on it: design-based ones only get narrower by it.

    Parameters
    ----------
    responses : ResponseMatrix
        Of n_models >= 0 models; NaN where missing.
    scenario_index : (n_items,)

    Returns
    -------
    Calibration
        In one dimension. Past models have ability 0, which few models can hardly tell from item difficulty.

    Raises
    ------
    DataError
        When a difficulty is no finite number.
    """
    observed = responses.observed
    n = observed.sum(axis=0).astype(np.float64)
    k = np.where(observed, responses.responses, 0.0).sum(axis=0)
    q = _prior_means(responses, scenario_index, k, n)
    right, wrong = k + PRIOR_ANSWERS * q, n - k + PRIOR_ANSWERS * (1.0 - q)
    n_models, n_items = responses.responses.shape
    covariance = np.zeros((n_items, 2, 2))
    covariance[:, 1, 1] = polygamma(1, right) + polygamma(1, wrong)  # variance of the logit of a beta variable
    return Calibration(
        parameters=ItemParameters.create(np.ones((n_items, 1)), logit(right / (right + wrong)), np.zeros(n_items)),
        item_covariance=covariance,
        abilities=np.zeros((n_models, 1)),
        ability_covariance=np.ones((n_models, 1, 1)),
        prior=AbilityPrior.standard(1),
        is_degenerate=np.zeros(n_items, dtype=bool),
        thresholds={},
        method=FEW_MODELS,
        item_model="1pl",
        converged=True,
        n_iterations=0,
        message=f"{n_models} past models are too few to fit an item model",
        history=np.zeros(0),
    )


def calibration_of_known(parameters: ItemParameters, prior: AbilityPrior | None = None) -> Calibration:
    """Take item parameters as they were given, without error and without past models.

    Parameters
    ----------
    parameters : ItemParameters
        Of n_items items in n_dims dimensions.
    prior : AbilityPrior, optional
        Of the ability that they were fitted with; else standard normal.

    Raises
    ------
    ParameterError
        When the prior has another number of dimensions.
    """
    n_items, n_dims = parameters.loadings.shape
    prior = AbilityPrior.standard(n_dims) if prior is None else prior
    if prior.n_dims != n_dims:
        raise ParameterError(f"the ability prior must have the items' {n_dims} dimensions, got {prior.n_dims}.")
    return Calibration(
        parameters=parameters,
        item_covariance=np.zeros((n_items, n_dims + 1, n_dims + 1)),
        abilities=np.zeros((0, n_dims)),
        ability_covariance=np.zeros((0, n_dims, n_dims)),
        prior=prior,
        is_degenerate=np.zeros(n_items, dtype=bool),
        thresholds={},
        method=KNOWN_PARAMETERS,
        item_model="2pl" if n_dims == 1 else "mirt",
        converged=True,
        n_iterations=0,
        message="known parameters, no past models",
        history=np.zeros(0),
    )


def _prior_means(responses: ResponseMatrix, index: IntArray, k: FloatArray, n: FloatArray) -> FloatArray:
    """Chance of success of each item before its own answers, (n_items,)."""
    right, answers = (np.bincount(index, weights=one) for one in (k, n))
    means = (right + 0.5) / (answers + 1.0)  # one half where nobody answered
    means = np.clip(means, SMALLEST_MEAN, 1.0 - SMALLEST_MEAN)[index]
    if DIFFICULTY_PRIOR not in responses.items.columns:
        return means
    column = responses.items[DIFFICULTY_PRIOR].cast(pl.Float64, strict=False)
    wrong = ~column.is_finite() & responses.items[DIFFICULTY_PRIOR].is_not_null()
    wrong |= column.is_null() & responses.items[DIFFICULTY_PRIOR].is_not_null()
    if wrong.any():
        names = responses.items["item_id"].filter(wrong).to_list()
        raise DataError(
            f"{DIFFICULTY_PRIOR} must be a finite number of logits, or empty, and is not for {shown(names)}. Leave "
            "it empty where nothing is known."
        )
    given = column.to_numpy()
    found: FloatArray = np.where(np.isnan(given), means, expit(-given))
    return np.clip(found, SMALLEST_MEAN, 1.0 - SMALLEST_MEAN)
