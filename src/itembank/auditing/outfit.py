"""Outfit: how surprising a model's answers are at its ability, by the item model."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.estimation.response_summary import score_basis
from itembank.irt.bernoulli import probability
from itembank.irt.newton import map_abilities
from itembank.numerics.arrays import FloatArray, IntArray

LEAST_PROBABILITY = 0.02
"""Probabilities are cut to this and its complement: one answer against a certainty would outweigh all others."""


def outfits(bank: Bank, items: IntArray, responses: FloatArray) -> FloatArray:
    """Outfit of models that answered these items, (n_models,); NaN where responses are not right or wrong.

    The misfit counts all answers alike; this counts failed easy and solved hard items most, which a few leaked or
    broken items make.

    Parameters
    ----------
    bank : Bank
        One that has not seen the models.
    items : (n_observed,)
    responses : (n_models, n_observed)
        Complete.
    """
    if bank.parameters.family != "bernoulli":
        return np.full(responses.shape[0], np.nan)
    basis = score_basis(bank)
    parameters, answers = basis.parameters.take(items), basis.answers(responses, items)
    return mean_square(answers, probability(parameters, map_abilities(parameters, answers, basis.prior).theta))


def mean_square(answers: FloatArray, expected: FloatArray) -> FloatArray:
    """``mean_i (y_i - p_i)^2 / (p_i (1 - p_i))`` (Wright & Stone 1979), (n_models,).

    Parameters
    ----------
    answers, expected : (n_models, n_items)
        y and p.
    """
    p = np.clip(expected, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    result: FloatArray = np.mean((answers - p) ** 2 / (p * (1.0 - p)), axis=1)
    return result
