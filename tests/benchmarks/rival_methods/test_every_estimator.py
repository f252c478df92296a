"""Rivals do with few and missing answers what every estimator does."""

import numpy as np
import pytest

from itembank_rivals.metabench import predict_metabench
from itembank_rivals.signature import predict_k_nearest, predict_random_forest
from tests.estimation.test_regressions import EveryEstimator


def metabench(train, scores, new):
    """On abilities that are the means of what was answered."""
    known, asked = (np.nan_to_num(np.nanmean(np.c_[a, np.full(len(a), 0.5)], axis=1))[:, None] for a in (train, new))
    return predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)


@pytest.mark.parametrize("estimator", [predict_k_nearest, metabench])
class TestNeighboursAndMetabench(EveryEstimator):
    pass


@pytest.mark.parametrize("estimator", [lambda *known: predict_random_forest(*known, n_trees=5)])
class TestForest(EveryEstimator):
    tolerance = 0.15  # its trees draw rows by number
