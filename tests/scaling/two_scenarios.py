import numpy as np
import polars as pl
from scipy.special import expit

from itembank.responses.responses import ResponseMatrix


def simulated(rng, *, n_models=80, n_items=60, correlation=0.9, n_trials=None, shift=0.0, n_scenarios=2):
    """2PL responses of a normal ability for each scenario; the last one's items are harder by `shift`.

    Returns the responses and the true abilities (n_models, n_scenarios).
    """
    covariance = np.full((n_scenarios, n_scenarios), correlation) + (1 - correlation) * np.eye(n_scenarios)
    theta = rng.multivariate_normal(np.zeros(n_scenarios), covariance, size=n_models)
    slope = np.exp(0.3 * rng.standard_normal((n_scenarios, n_items)))
    difficulty = rng.standard_normal((n_scenarios, n_items))
    difficulty[-1] += shift
    p = expit(slope * (theta[:, :, None] - difficulty)).reshape(n_models, -1)
    trials = None if n_trials is None else np.full(p.shape, n_trials)
    right = rng.binomial(1 if n_trials is None else n_trials, p)
    names = {"model_id": [f"m{i}" for i in range(n_models)], "recipe": [f"r{i % 8}" for i in range(n_models)]}
    models = pl.DataFrame({**names, "flops": 10.0 ** (20.0 + theta[:, 0] + 0.5 * rng.standard_normal(n_models))})
    of_items = [(f"i{i}", f"s{i // n_items}") for i in range(p.shape[1])]
    items = pl.DataFrame(of_items, schema=["item_id", "scenario"], orient="row")
    responses = right / (1 if n_trials is None else n_trials)
    return ResponseMatrix.create(responses, models=models, items=items, n_trials=trials), theta
