"""Made-up answers of linking models with known abilities and items, for tests of linking."""

import numpy as np

from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank_living.changes.linking import LinkingData


def items_of(rng, n_items, n_dims=1, centre=0.0):
    """Draw items with loadings around 1.2 and intercepts around a centre."""
    loadings = 1.2 + 0.3 * rng.normal(size=(n_items, n_dims))
    return ItemParameters.create(loadings, centre + rng.normal(size=n_items))


def answers_to(rng, items, theta):
    """Draw right and wrong answers, (n_models, n_items)."""
    return (rng.random((len(theta), items.n_items)) < probability(items, theta)).astype(float)


def linking_data(rng, *, n_models=12, n_old=60, n_new=20, n_dims=1, theta=None, new=None):
    """Return data, and the true abilities and new items."""
    theta = rng.normal(size=(n_models, n_dims)) if theta is None else theta
    old, new = items_of(rng, n_old, n_dims), items_of(rng, n_new, n_dims, 0.5) if new is None else new
    data = LinkingData(
        old,
        answers_to(rng, old, theta),
        answers_to(rng, new, theta),
        np.zeros(new.n_items),
        AbilityPrior.standard(n_dims),
    )
    return data, theta, new
