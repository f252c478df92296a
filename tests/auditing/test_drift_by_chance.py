"""Items that chance alone would mark: as many as clean new models mark, also of answers with little spread."""

import numpy as np
import pytest

from itembank.auditing.item_drift import (
    LARGEST_Z,
    PastResiduals,
    _counted_z,
    grains,
    marked_by_chance,
    standardised_sums,
    surest_variance,
)


@pytest.mark.parametrize(
    ("spread", "n_new", "scatter"), [(0.22, 10, 1), (0.3, 10, 1), (0.45, 10, 1), (0.25, 18, 1), (0.22, 4, 1.3)]
)
def test_as_many_are_expected_as_new_models_of_the_same_kind_mark(spread, n_new, scatter):
    """Past residuals are about the mean of the others, as cross-validated ones are, and sum to nothing."""
    rng, n_past, n_items = np.random.default_rng(n_new), 40, 8000
    past, new = spread * rng.normal(size=(n_past, n_items)), spread * rng.normal(size=(n_new, n_items))
    new = scatter * (new - past.mean(axis=0))
    past = (past - past.mean(axis=0)) * n_past / (n_past - 1)
    of_items, seen = (np.zeros(n_items), np.ones(n_items)), np.ones(new.shape, dtype=bool)
    known = PastResiduals.of(past, np.zeros((n_past, 0)), *of_items)
    z, _, _ = standardised_sums(new, known, np.zeros((n_new, 0)))
    marked = int(np.sum(_counted_z(z, new, np.ones(n_items)) > LARGEST_Z))
    of_past = (past, past, np.zeros((n_past, 0)), *of_items)
    expected = marked_by_chance(*of_past, observed=seen, n_draws=10, scatter=scatter)
    assert marked > 25
    assert expected == pytest.approx(marked, rel=0.25)


def test_ten_draws_of_few_items_are_off_and_as_many_as_are_taken_are_not():
    rng = np.random.default_rng(0)
    given = np.zeros((30, 0)), np.zeros(80), np.ones(80)
    seen = {"observed": np.ones((6, 80), dtype=bool), "n_draws": 250}
    found = [marked_by_chance(*2 * (rng.normal(size=(30, 80)),), *given, **seen) for _ in range(8)]
    assert np.std(found) < 0.25
    assert np.mean(found) == pytest.approx(80 * 0.0124, abs=0.2)


@pytest.mark.parametrize("n_new", [3, 12])
def test_graded_answers_of_little_spread_are_marked_as_often_as_normal_deviates_and_as_is_said(n_new):
    """Forty right or wrong answers vouch for a spread of 0.15, these graded ones for one of 0.03: they have 0.1."""
    rng, n_past, n_items = np.random.default_rng(n_new), 40, 20_000
    past, new = 0.1 * rng.normal(size=(n_past, n_items)), 0.1 * rng.normal(size=(n_new, n_items))
    grain = grains(past, 0.5 + past, np.zeros(n_items, dtype=int))
    least, none = np.sqrt(surest_variance(np.full(n_items, n_past), grain)), np.zeros((n_past, 0))
    past_less, new_less = (past - past.mean(axis=0)) * n_past / (n_past - 1), new - past.mean(axis=0)
    z, _, _ = standardised_sums(new_less, PastResiduals.of(past_less, none, least, grain), none[:n_new])
    marked = np.mean(_counted_z(z, new_less, grain) > LARGEST_Z)
    seen = np.ones(new.shape, dtype=bool)
    expected = marked_by_chance(past_less, past_less, none, least, grain, observed=seen, n_draws=10) / n_items
    assert marked == pytest.approx(0.0115, rel=0.25)
    assert expected == pytest.approx(0.0124, rel=0.15)
