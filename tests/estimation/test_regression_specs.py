"""The choices check themselves."""

import pytest

from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import (
    Factor,
    KNearest,
    Metabench,
    RandomForest,
    Ridge,
    TaskMean,
    TaskMeanEB,
)


def test_every_spec_has_defaults():
    assert TaskMeanEB().strength == 5.0
    for kind in (TaskMean, Ridge, KNearest, RandomForest, Metabench, Factor):
        assert kind() == kind()


@pytest.mark.parametrize(
    ("kind", "choice", "said"),
    [
        (TaskMeanEB, {"strength": 0.0}, "strength must be a finite number > 0, got 0.0"),
        (TaskMeanEB, {"strength": float("inf")}, "got inf"),
        (Ridge, {"penalty": "gcv"}, "penalty must be a finite number > 0 or 'leave-one-out', got 'gcv'"),
        (Ridge, {"penalty": float("nan")}, "got nan"),
        (Ridge, {"penalty": True}, "got True"),
        (Ridge, {"towards": "mean"}, "towards must be one of 'weights', 'zero', got 'mean'"),
        (KNearest, {"n_neighbours": 0}, "n_neighbours must be a whole number >= 1 or 'leave-one-out', got 0"),
        (KNearest, {"n_components": 0}, "n_components must be a whole number >= 1 or 'leave-one-out', got 0"),
        (KNearest, {"n_neighbours": 2.5}, "got 2.5"),
        (RandomForest, {"n_trees": 0}, "n_trees must be a whole number >= 1, got 0"),
        (RandomForest, {"n_components": 0}, "n_components"),
        (RandomForest, {"seed": -1}, "seed must be a whole number >= 0, got -1"),
        (Metabench, {"n_knots": 1}, "n_knots must be a whole number >= 2, got 1"),
        (Factor, {"n_factors": "all"}, "n_factors must be a whole number >= 1 or 'auto', got 'all'"),
    ],
)
def test_choices_outside_what_they_may_be_are_refused(kind, choice, said):
    with pytest.raises(ParameterError, match=said):
        kind(**choice)
