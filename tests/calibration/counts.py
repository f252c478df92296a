"""Counts of right answers, and the same answers one by one: a column for each trial of an item."""

from dataclasses import replace

import numpy as np
from scipy.special import expit

from itembank.calibration.fits import FitData

MOST_TRIALS = 6


def counted(n_models, n_items, *, n_dims=1, lower=0.0, missing=False, seed=0):
    """Counts of one to six trials; with missing, of none for a fifth of the cells."""
    rng = np.random.default_rng(seed)
    theta, loadings = rng.normal(size=(n_models, n_dims)), rng.lognormal(0.0, 0.4, (n_items, n_dims))
    chances = lower + (1.0 - lower) * expit(theta @ loadings.T + rng.normal(size=n_items))
    n_trials = rng.integers(1, MOST_TRIALS + 1, size=chances.shape)
    if missing:
        n_trials[rng.random(chances.shape) < 0.2] = 0
    n_correct = rng.binomial(n_trials, chances)
    n_correct[:2] = np.where(n_trials[:2] > 0, [[0], [1]], 0)  # no item is always right, or always wrong
    rates = n_correct / np.maximum(n_trials, 1)
    kind = {"family": "binomial", "n_trials": n_trials.astype(float)}
    return FitData(rates, n_trials > 0 if missing else None, np.full(n_items, lower), np.arange(n_items) % 2, **kind)


def one_by_one(data):
    """Single answers, (n_models, n_items * most trials), the trials of one item next to each other."""
    n_correct = np.rint(data.responses * data.n_trials)
    trial = np.arange(MOST_TRIALS)
    answers = (trial < n_correct[:, :, None]).astype(float)
    observed = trial < data.n_trials[:, :, None]
    shape = (len(n_correct), -1)
    return FitData(answers.reshape(shape), observed.reshape(shape), np.repeat(data.lower_asymptote, MOST_TRIALS))


def repeated(items):
    """Each item's parameters for each of its trials."""
    return np.repeat(items, MOST_TRIALS, axis=0)


def summed(values):
    """Sum what belongs to one item over its trials."""
    return values.reshape(-1, MOST_TRIALS, *values.shape[1:]).sum(axis=1)


def once_each(data):
    """The same binary responses as counts of one trial, or none where missing."""
    observed = np.ones(data.responses.shape) if data.observed is None else data.observed
    return replace(data, family="binomial", n_trials=observed.astype(float))
