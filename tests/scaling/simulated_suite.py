"""A suite of models of known laws: recipes x sizes x checkpoints, 2PL items, log-likelihoods of choices."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit

from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True)
class Suite:
    """Responses of every kind, the compute of each model, and what they were made from."""

    probability: ResponseMatrix
    accuracy: ResponseMatrix
    bits_per_byte: np.ndarray  # (n_models, n_items)
    models: pl.DataFrame
    flops: np.ndarray
    params: np.ndarray
    recipes: np.ndarray
    is_final: np.ndarray
    theta: np.ndarray  # (n_models,)
    slopes: np.ndarray  # (n_recipes,) per unit of log FLOP
    levels: np.ndarray  # (n_recipes,) ability at the centre
    centre: float
    loadings: np.ndarray
    intercept: np.ndarray

    def law(self, recipe, log_flops):
        return self.levels[recipe] + self.slopes[recipe] * (log_flops - self.centre)


def simulated_suite(
    rng, *, n_recipes=6, n_sizes=7, n_checkpoints=3, n_items=120, scenarios=("easy", "hard"),
    residual_sd=0.05, slope_sd=0.03, levels=None,
):  # fmt: skip
    """Make a suite; probabilities are Beta(30 p, 30 (1 - p)) around a 2PL, answers are right with chance p."""
    params = 1e4 * 2.5 ** np.arange(n_sizes)
    final_flops = 6.0 * params * (20.0 * params)
    shares = np.linspace(1.0 / n_checkpoints, 1.0, n_checkpoints)
    recipe, size, point = (part.ravel() for part in np.indices((n_recipes, n_sizes, n_checkpoints)))
    flops = final_flops[size] * shares[point]
    centre = float(np.mean(np.log(final_flops)))
    slopes = 0.35 + slope_sd * rng.standard_normal(n_recipes)
    drawn_levels = 0.25 * rng.standard_normal(n_recipes)
    levels = drawn_levels if levels is None else np.asarray(levels)
    drawn = residual_sd * rng.standard_normal((n_recipes, n_sizes))
    theta = levels[recipe] + slopes[recipe] * (np.log(flops) - centre) + drawn[recipe, size]
    is_final = point == n_checkpoints - 1
    theta = theta - np.where(is_final, 0.0, 0.15)  # a half-finished schedule
    names = np.repeat(scenarios, n_items // len(scenarios))
    loadings = np.exp(0.4 * rng.standard_normal(len(names)))
    difficulty = 1.2 * rng.standard_normal(len(names)) + 0.8 * (names == scenarios[-1])
    p = expit(loadings * (theta[:, None] - difficulty))
    probability = np.clip(rng.beta(p * 30.0, (1.0 - p) * 30.0), 1e-5, 1.0 - 1e-5)
    accuracy = (rng.random(p.shape) < p).astype(float)
    ids = [f"recipe-{r}/{int(params[s])}/{k}" for r, s, k in zip(recipe, size, point, strict=True)]
    trained = {"params": params[size], "train_tokens": flops / (6.0 * params[size]), "flops": flops}
    recipes = [f"recipe-{r}" for r in recipe]
    models = pl.DataFrame({"model_id": ids, "recipe": recipes, **trained, "is_final": is_final})
    of_kind = [ResponseMatrix.create(one, model_ids=ids, scenarios=names.tolist()) for one in (probability, accuracy)]
    drawn = (flops, params[size], recipe, is_final, theta, slopes, levels, centre, loadings, -loadings * difficulty)
    return Suite(*of_kind, -np.log2(probability), models, *drawn)
