import math

import pytest

from itembank.errors import ParameterError
from itembank_studies.simulation.simulation_specs import SimulationSpec


def test_the_default_is_of_the_published_shape():
    spec = SimulationSpec()
    assert (spec.n_models, spec.n_items, spec.n_tasks, spec.n_dims) == (65, 109_564, 163, 3)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"n_models": 0}, "n_models must be a whole number >= 1, got 0"),
        ({"n_models": 2.0}, "n_models must be a whole number"),
        ({"n_models": True}, "n_models must be a whole number"),
        ({"n_dims": -1}, "n_dims must be a whole number >= 0, got -1"),
        ({"n_items": 5, "n_tasks": 6}, "n_items must be at least n_tasks = 6, got 5"),
        ({"guessing": 1.0}, "guessing must be at least 0 and below 1, got 1.0"),
        ({"missing": -0.1}, "missing must be at least 0 and below 1"),
        ({"missing": math.nan}, "missing must be a finite number, got nan"),
        ({"task_cost_ratio": 0.5}, "task_cost_ratio must be at least 1, got 0.5"),
        ({"cheapest_task_tokens": 0.0}, "cheapest_task_tokens must be at least 1"),
        ({"item_cost_spread": -1.0}, "item_cost_spread must be at least 0"),
        ({"slope_spread": "wide"}, "slope_spread must be a finite number, got 'wide'"),
    ],
)
def test_impossible_choices_are_named(choice, message):
    with pytest.raises(ParameterError, match=message):
        SimulationSpec(**choice)
