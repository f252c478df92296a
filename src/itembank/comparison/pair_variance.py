"""Variance of differences when another score is meant than that of one run."""

import numpy as np

from itembank.bank.banks import Bank
from itembank.comparison.pairs import model_pairs
from itembank.estimation.estimand_names import RUN, Estimand
from itembank.estimation.estimands import run_variance
from itembank.estimation.observations import Observations
from itembank.estimation.response_summary import summarise_responses
from itembank.numerics.arrays import FloatArray
from itembank.responses.responses import ResponseMatrix


def pair_variance(estimand: Estimand, bank: Bank, observations: Observations, responses: ResponseMatrix) -> FloatArray:
    """Find the variance of each pair's difference in one run around the difference that is meant, (n_pairs, n_targets).

    Runs of two models are independent, so that their variances around expected scores add up.

    Parameters
    ----------
    estimand : {'run', 'expected'}
    bank : Bank
    observations : Observations
    responses : ResponseMatrix
        Of the same models, with the attempts behind each response.
    """
    first, second = model_pairs(responses.n_models)
    if estimand == RUN:
        return np.zeros((first.size, len(bank.targets.names)))
    variance = run_variance(bank, responses, summarise_responses(bank, observations).abilities)
    return variance[first] + variance[second]
