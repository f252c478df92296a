import numpy as np
import pytest

from itembank.living.linking_error import jackknife_error
from itembank.living.spread import covered_range, spread_over
from tests.living.answers import linking_data


def mean_of_models(data):
    return data.new_responses.mean(axis=1).mean(keepdims=True)


def test_the_jackknife_of_a_mean_is_its_standard_error(rng):
    data, _, _ = linking_data(rng, n_models=7)
    of_models = data.new_responses.mean(axis=1)
    expected = of_models.std(ddof=1) / np.sqrt(7)
    assert jackknife_error(data, mean_of_models, of_models)[0] == pytest.approx(expected)


def test_groups_of_models_stand_for_many(rng):
    data, _, _ = linking_data(rng, n_models=40)
    calls = []

    def counted(part):
        calls.append(part.n_models)
        return mean_of_models(part)

    jackknife_error(data, counted, data.new_responses.mean(axis=1))
    assert calls == [36] * 10


def test_the_range_that_linking_models_cover():
    known = np.linspace(0.0, 1.0, 41)
    assert covered_range(np.array([0.0, 1.0]), known) == pytest.approx(1.0)
    assert covered_range(np.array([0.25, 0.725]), known) == pytest.approx(0.5)
    assert covered_range(np.array([0.5]), np.full(9, 0.5)) == 1.0


def test_further_models_fill_the_widest_gaps():
    known = np.linspace(0.0, 1.0, 11)
    ids = [f"m{k}" for k in range(11)]
    found = spread_over(known, np.array([0.5]), ids, ["m5"], 3)
    assert found[:2] == ("m1", "m9")
    assert spread_over(known, known, ids, ids, 3) == ()
