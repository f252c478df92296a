"""Simulated responses with known truth: IRSL 4.1's, draw by draw as in its public code, and counts at equal budgets."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from itembank.numerics.arrays import FloatArray, IntArray

N_ITEMS = 100
NOISE_SD = 0.01
LOG_SLOPE_SD = 0.5
LEAST_PROBABILITY = 1e-6
SIZES = (2, 4, 8, 16, 32, 64, 128)
SEED_OF_ITEMS = {"1pl": 7, "2pl": 42}


class Truth(NamedTuple):
    """Abilities (n_models,), discriminations and difficulties (n_items,)."""

    ability: FloatArray
    discrimination: FloatArray
    difficulty: FloatArray

    @property
    def probability(self) -> FloatArray:
        """Of a correct answer, (n_models, n_items)."""
        share: FloatArray = expit(self.discrimination * (self.ability[:, None] - self.difficulty))
        return share


class Draw(NamedTuple):
    """One trial: single answers (0 or 1) and noisy probabilities, each (n_models, n_items)."""

    trial: int
    truth: Truth
    answers: FloatArray
    probabilities: FloatArray


def published_draws(item_model: str, n_trials: int, sizes: tuple[int, ...] = SIZES) -> Iterator[Draw]:
    """Draw IRSL's trials for every number of models; the first ten are those of the published figures.

    The seeds, and the order in which numbers are drawn, are those of IRSL's public code.
    """
    of_items = np.random.default_rng(SEED_OF_ITEMS[item_model])
    for trial in range(n_trials):
        difficulty = of_items.normal(0.0, 1.0, size=N_ITEMS)
        slope = of_items.lognormal(0.0, LOG_SLOPE_SD, size=N_ITEMS) if item_model == "2pl" else np.ones(N_ITEMS)
        for n_models in sizes:
            rng = np.random.default_rng(42 + 1000 * trial + n_models)
            truth = Truth(rng.normal(0.0, 1.0, size=n_models), slope, difficulty)
            chances = truth.probability
            answers = rng.binomial(1, chances).astype(np.float64)
            noisy = chances + rng.normal(0.0, NOISE_SD, size=chances.shape)
            yield Draw(trial, truth, answers, np.clip(noisy, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))


class Counts(NamedTuple):
    """One trial at one budget: correct answers (n_models, n_items) of n_samples each."""

    trial: int
    truth: Truth
    n_samples: int
    n_correct: IntArray


def counted_draws(item_model: str, n_trials: int, sizes: tuple[int, ...], budgets: tuple[int, ...]) -> Iterator[Counts]:
    """Draw counts of the same simulation: the same truth at every budget of samples a cell."""
    for trial in range(n_trials):
        for n_models in sizes:
            rng = np.random.default_rng([trial, n_models, SEED_OF_ITEMS[item_model]])
            slope = rng.lognormal(0.0, LOG_SLOPE_SD, size=N_ITEMS) if item_model == "2pl" else np.ones(N_ITEMS)
            truth = Truth(rng.normal(size=n_models), slope, rng.normal(size=N_ITEMS))
            for n_samples in budgets:
                yield Counts(trial, truth, n_samples, rng.binomial(n_samples, truth.probability))
