from dataclasses import replace

import numpy as np
import pytest

from itembank.irt.parameters import ItemParameters
from itembank_living.changes.linking import covered_range, displacements, drifted_anchors, jackknife_error, spread_over
from tests.living.answers import answers_to, linking_data


def moved(rng, shift, items, n_models=60):
    """Answers to old items of which some have become easier by a shift, beginning with the easiest."""
    data, theta, _ = linking_data(rng, n_models=n_models, n_old=80)
    easiest = np.argsort(-data.old.intercept)
    data = replace(data, old=data.old.take(easiest))
    intercept = data.old.intercept.copy()
    intercept[items] += shift
    answers = answers_to(rng, ItemParameters.create(data.old.loadings, intercept), theta)
    return replace(data, old_responses=answers)


def test_items_that_moved_are_unlinked_and_few_others_at_most_a_fifth(rng):
    data = moved(rng, -3.0, [0, 1, 2, 3])
    displacement, _, is_unlinked = drifted_anchors(data, np.zeros(80))
    assert is_unlinked[[0, 1, 2, 3]].all()
    assert is_unlinked.sum() <= 6
    assert (displacement[[0, 1, 2, 3]] < -1.0).all()
    _, _, is_unlinked = drifted_anchors(moved(rng, 3.0, np.arange(0, 80, 2)), np.zeros(80))
    assert is_unlinked.sum() == 16


def test_displacements_have_their_errors_which_grow_by_what_the_bank_does_not_know(rng):
    data, _, _ = linking_data(rng, n_models=200, n_old=150)
    value, error = displacements(data, data, np.zeros(150))
    assert np.std(value / error) == pytest.approx(1.0, abs=0.25)
    data, _, _ = linking_data(rng, n_models=30)
    value, error = displacements(data, data, np.zeros(60))
    same, larger = displacements(data, data, np.full(60, 0.3))
    np.testing.assert_array_equal(value, same)
    np.testing.assert_allclose(larger**2 - error**2, 0.3)


def mean_of_models(data):
    return data.new_responses.mean(axis=1).mean(keepdims=True)


def test_the_jackknife_of_a_mean_is_its_standard_error_and_groups_stand_for_many(rng):
    data, _, _ = linking_data(rng, n_models=7)
    of_models = data.new_responses.mean(axis=1)
    expected = of_models.std(ddof=1) / np.sqrt(7)
    assert jackknife_error(data, mean_of_models, of_models)[0] == pytest.approx(expected)
    data, _, _ = linking_data(rng, n_models=40)
    calls = []

    def counted(part):
        calls.append(part.n_models)
        return mean_of_models(part)

    jackknife_error(data, counted, data.new_responses.mean(axis=1))
    assert calls == [36] * 10


def test_the_range_that_linking_models_cover_and_further_ones_that_fill_its_gaps():
    known = np.linspace(0.0, 1.0, 41)
    assert covered_range(np.array([0.0, 1.0]), known) == pytest.approx(1.0)
    assert covered_range(np.array([0.25, 0.725]), known) == pytest.approx(0.5)
    assert covered_range(np.array([0.5]), np.full(9, 0.5)) == 1.0
    known = np.linspace(0.0, 1.0, 11)
    ids = [f"m{k}" for k in range(11)]
    found = spread_over(known, np.array([0.5]), ids, ["m5"], 3)
    assert found[:2] == ("m1", "m9")
    assert spread_over(known, known, ids, ids, 3) == ()
