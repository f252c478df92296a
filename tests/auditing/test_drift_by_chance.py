"""Items that chance alone would mark: as many as clean new models mark, also of answers with little spread."""

import numpy as np
import pytest

from itembank.auditing.item_drift import LARGEST_Z, PastResiduals, _counted_z, marked_by_chance, standardised_sums


@pytest.mark.parametrize(("spread", "n_new"), [(0.22, 10), (0.3, 10), (0.45, 10), (0.25, 18)])
def test_as_many_are_expected_as_new_models_of_the_same_kind_mark(spread, n_new):
    """Past residuals are about the mean of the others, as cross-validated ones are, and sum to nothing."""
    rng, n_past, n_items = np.random.default_rng(n_new), 40, 8000
    past, new = spread * rng.normal(size=(n_past, n_items)), spread * rng.normal(size=(n_new, n_items))
    new = new - past.mean(axis=0)
    past = (past - past.mean(axis=0)) * n_past / (n_past - 1)
    of_items, seen = (np.zeros(n_items), np.ones(n_items)), np.ones(new.shape, dtype=bool)
    known = PastResiduals.of(past, np.zeros((n_past, 0)), *of_items)
    z, _, _ = standardised_sums(new, known, np.zeros((n_new, 0)))
    marked = int(np.sum(_counted_z(z, new, np.ones(n_items)) > LARGEST_Z))
    expected = marked_by_chance(past, past, np.zeros((n_past, 0)), *of_items, observed=seen, n_draws=10)
    assert marked > 25
    assert expected == pytest.approx(marked, rel=0.25)


def test_ten_draws_of_few_items_are_off_and_as_many_as_are_taken_are_not():
    rng = np.random.default_rng(0)
    given = np.zeros((30, 0)), np.zeros(80), np.ones(80)
    seen = {"observed": np.ones((6, 80), dtype=bool), "n_draws": 250}
    found = [marked_by_chance(*2 * (rng.normal(size=(30, 80)),), *given, **seen) for _ in range(8)]
    assert np.std(found) < 0.25
    assert np.mean(found) == pytest.approx(80 * 0.0124, abs=0.2)
