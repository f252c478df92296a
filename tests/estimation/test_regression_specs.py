"""The choices check themselves."""

import pytest

from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import (
    Factor,
    Ridge,
    TaskMean,
    TaskMeanEB,
)


def test_every_spec_has_defaults():
    assert TaskMeanEB().strength == 5.0
    for kind in (TaskMean, Ridge, Factor):
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
        (Factor, {"n_factors": "all"}, "n_factors must be a whole number >= 1 or 'auto', got 'all'"),
    ],
)
def test_choices_outside_what_they_may_be_are_refused(kind, choice, said):
    with pytest.raises(ParameterError, match=said):
        kind(**choice)
