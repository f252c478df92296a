"""Simulated responses of benchmark shape, with the truth kept aside."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

MASKED_SHARE = 0.1


@dataclass(frozen=True)
class Problem:
    """Responses to calibrate on, and what to judge the result by.

    `responses` (n_models, n_items) has NaN in the masked tenth; `masked` marks it; `hidden` holds all responses;
    `theta` (n_models, n_dims) and `chances` (n_models, n_items) are the truth.
    """

    responses: np.ndarray
    masked: np.ndarray
    hidden: np.ndarray
    theta: np.ndarray
    chances: np.ndarray


def simulate(n_models: int, n_items: int, n_dims: int, *, seed: int = 0) -> Problem:
    """Draw abilities N(0, 1), difficulty N(0, 1), discrimination lognormal(0, 0.5), shared among dimensions."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, n_dims))
    direction = np.abs(rng.normal(size=(n_items, n_dims))) if n_dims > 1 else np.ones((n_items, 1))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    discrimination = rng.lognormal(0.0, 0.5, n_items)
    intercept = -discrimination * rng.normal(size=n_items)
    logits = theta @ (discrimination[:, None] * direction).T + intercept
    chances = 1.0 / (1.0 + np.exp(-logits))
    hidden = (rng.random(chances.shape) < chances).astype(np.float64)
    masked = rng.random(chances.shape) < MASKED_SHARE
    return Problem(np.where(masked, np.nan, hidden), masked, hidden, theta, chances)


def judge(problem: Problem, theta: np.ndarray, chances: np.ndarray) -> dict[str, float]:
    """Held-out log-likelihood a cell of the masked tenth, and how well abilities are recovered.

    `r_ability` is the mean multiple correlation of each true dimension with the estimated ones: rotation aside.
    """
    design = np.column_stack([np.ones(len(theta)), theta])
    fitted = design @ np.linalg.lstsq(design, problem.theta, rcond=None)[0]
    r = [np.corrcoef(fitted[:, k], problem.theta[:, k])[0, 1] for k in range(problem.theta.shape[1])]
    return {
        "held_out_log_likelihood": held_out_log_likelihood(problem.hidden, problem.masked, chances),
        "r_ability": float(np.mean(r)),
    }


def held_out_log_likelihood(hidden: np.ndarray, masked: np.ndarray, chances: np.ndarray) -> float:
    """Mean log-likelihood of the masked cells; responses, the mask and probabilities are (n_models, n_items)."""
    # In double precision: in single precision the upper limit would be 1, whose complement has no logarithm.
    p, y = np.clip(chances[masked].astype(np.float64), 1e-9, 1.0 - 1e-9), hidden[masked]
    return float(np.mean(y * np.log(p) + (1.0 - y) * np.log1p(-p)))


def save_responses(path: Path, responses: np.ndarray, n_dims: int) -> None:
    """Write what a calibration may see."""
    np.savez(path, responses=responses, n_dims=n_dims)
