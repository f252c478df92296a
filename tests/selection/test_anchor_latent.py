import dataclasses

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from itembank.errors import ParameterError
from itembank.irt.linear_gaussian import FactorModel, fit_factor_model
from itembank.selection.anchors import latent_features
from itembank.selection.select import select
from itembank.selection.selector_specs import AnchorLatent
from tests.bank.banks import make_bank


def test_squared_distances_are_the_expected_ones_of_responses_without_their_noise(rng):
    model = FactorModel(rng.random(6), rng.normal(size=(6, 2)), np.full(6, 0.3))
    drawn = model.mean + rng.normal(size=(200_000, 2)) @ model.loadings.T
    expected = np.mean((drawn[:, :, None] - drawn[:, None, :]) ** 2, axis=0)
    np.testing.assert_allclose(squareform(pdist(latent_features(model), "sqeuclidean")), expected, rtol=0.02)


def test_items_that_answer_to_the_same_factor_are_one_cluster(rng):
    """Noise hides from raw responses what the components show: the weights are those of the true groups."""
    group = np.repeat(np.arange(4), [8, 16, 12, 24])
    strength = np.array([[0.25, 0.0], [0.0, 0.25], [-0.2, 0.1], [0.1, -0.2]])
    values = 0.5 + rng.normal(size=(80, 2)) @ strength[group].T + 0.15 * rng.normal(size=(80, 60))
    bank = make_bank(n_models=80, n_items=60)
    items = bank.responses.items.with_columns(scenario=np.repeat("all", 60))
    responses = dataclasses.replace(bank.responses, responses=np.clip(values, 0.0, 1.0), items=items)
    targets = type(bank.targets).create(items)
    one = dataclasses.replace(bank, responses=responses, targets=targets)
    selection = select(one, 4, method="anchor-latent", rng=0)
    chosen = group[one.responses.item_indices(selection.item_ids)]
    found = dict(zip(chosen.tolist(), selection.weights.tolist(), strict=True))
    assert found == pytest.approx({0: 8 / 60, 1: 16 / 60, 2: 12 / 60, 3: 24 / 60})


def test_the_number_of_components_is_at_most_the_one_given():
    bank = make_bank(n_models=60, n_items=60, n_dims=3)
    assert fit_factor_model(bank.responses.responses).n_factors >= 1
    few = select(bank, 12, method=AnchorLatent(1), rng=0)
    assert few.item_ids == select(bank, 12, method=AnchorLatent(1), rng=0).item_ids
    with pytest.raises(ParameterError, match="n_components must be a whole number >= 1 or 'auto', got 0"):
        AnchorLatent(0)


def test_missing_responses_are_allowed():
    gappy = make_bank(n_models=40, n_items=60, with_extras=True)
    assert select(gappy, 12, method="anchor-latent", rng=0).n_items == 12
