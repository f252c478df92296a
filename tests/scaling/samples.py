"""Repeated samples of known truth: beta-binomial counts of models on items, and a bank that knows the items."""

import dataclasses

import numpy as np

from itembank.bank.banks import Bank, Calibration
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets


@dataclasses.dataclass(frozen=True)
class Samples:
    """Counts, and the pass rates (n_models, n_items) and abilities they were drawn from."""

    responses: ResponseMatrix
    rates: np.ndarray
    abilities: np.ndarray
    parameters: ItemParameters


def simulated_samples(
    n_models=30, n_items=60, n_trials=50, *, precision=8.0, difficulty=2.0, seed=5, scenarios=("math",)
):
    """Draw items in `scenarios` one after the other, of the logit ability - difficulty, and counts of their rates."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    intercept = -rng.normal(difficulty, 1.5, n_items)
    parameters = ItemParameters.create(np.ones((n_items, 1)), intercept)
    mean = 1.0 / (1.0 + np.exp(-(theta[:, None] + intercept)))
    rates = rng.beta(mean * precision, (1.0 - mean) * precision)
    trials = np.broadcast_to(n_trials, mean.shape).astype(np.int64)
    correct = rng.binomial(trials, rates)
    names = [scenarios[i % len(scenarios)] for i in range(n_items)]
    responses = ResponseMatrix.create(correct / trials, scenarios=names, n_trials=trials)
    return Samples(responses, rates, theta, parameters)


def known_bank(samples, *, thresholds=None):
    """A bank of these models whose item parameters are the true ones."""
    n_models, n_items = samples.responses.responses.shape
    errors = {"item_covariance": np.zeros((n_items, 2, 2)), "ability_covariance": np.zeros((n_models, 1, 1))}
    how = {"method": "variational", "item_model": "1pl", "converged": True, "n_iterations": 1, "message": ""}
    calibration = Calibration(
        parameters=samples.parameters, abilities=samples.abilities[:, None], **errors, prior=AbilityPrior.standard(1),
        is_degenerate=np.zeros(n_items, dtype=bool), thresholds=thresholds or {}, **how, history=np.zeros(1),
    )  # fmt: skip
    targets = ScoreTargets.create(samples.responses.items)
    n_scenarios = targets.n_scenarios
    return Bank("true", samples.responses, calibration, targets, np.zeros(n_scenarios), np.zeros(n_scenarios))
