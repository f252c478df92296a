"""The two studies: recovery from probabilities and single answers, and counts against rates at equal budgets."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from benchmarks.published_simulation.draws import LEAST_PROBABILITY, Truth, counted_draws, published_draws
from benchmarks.published_simulation.measures import errors
from benchmarks.published_simulation.ways import PUBLISHED, Outcome, fit

MINIMUM_MODELS = 3
"""Of a calibration on single answers."""
ITEM_MODELS = ("1pl", "2pl")
BUDGETS = (1, 4, 16, 64, 256, 2500)
BUDGET_SIZES = (2, 8, 32)


def recovery(ways: list[str], n_trials: int) -> Iterator[dict[str, object]]:
    """One row for each draw, kind of response and way."""
    for item_model in ITEM_MODELS:
        for draw in published_draws(item_model, n_trials):
            for family, responses in (("beta", draw.probabilities), ("bernoulli", draw.answers)):
                for way in ways:
                    if family == "bernoulli" and way != PUBLISHED and len(responses) < MINIMUM_MODELS:
                        continue  # refused: two models' single answers say next to nothing
                    if family == "beta" and way not in {PUBLISHED, "variational"}:
                        continue  # other methods have no such family
                    outcome = fit(way, responses, item_model=item_model, family=family)
                    yield {**_row(item_model, way, draw.trial, draw.truth, outcome), "family": family}


def budgets(ways: list[str], n_trials: int) -> Iterator[dict[str, object]]:
    """One row for each draw of counts, family and way; rates of 0 and 1 are moved into (0, 1) for the Beta."""
    for item_model in ITEM_MODELS:
        for draw in counted_draws(item_model, n_trials, BUDGET_SIZES, BUDGETS):
            rates = draw.n_correct / draw.n_samples
            n_samples = np.full(rates.shape, draw.n_samples)
            inside = np.clip(rates, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
            for way in ways:
                for family, responses in (("beta", inside), ("binomial", rates)):
                    if draw.n_samples == 1 and len(rates) < MINIMUM_MODELS:
                        continue
                    counts = n_samples if family == "binomial" else None
                    outcome = fit(way, responses, item_model=item_model, family=family, n_trials=counts)
                    labels = {"family": family, "n_samples": draw.n_samples}
                    yield {**_row(item_model, way, draw.trial, draw.truth, outcome), **labels}


def _row(item_model: str, way: str, trial: int, truth: Truth, outcome: Outcome) -> dict[str, object]:
    found = errors(outcome.found, truth, has_slopes=item_model == "2pl")
    return {
        "item_model": item_model,
        "way": way,
        "n_models": len(truth.ability),
        "trial": trial,
        "rmse": found.difficulty,
        "rmse_centred": found.difficulty_centred,
        "rmse_fitted": found.difficulty_fitted,
        "rmse_discrimination": found.discrimination,
        "correlation": found.correlation,
        "precision": outcome.precision,
        "converged": outcome.converged,
        "cpu_seconds": outcome.seconds,
    }


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """Means over trials, and the standard deviation and largest of the RMSE."""
    keys = [name for name in ("item_model", "family", "n_samples", "way", "n_models") if name in rows.columns]
    return (
        rows.group_by(keys, maintain_order=True)
        .agg(
            pl.len().alias("n_trials"),
            pl.col("rmse").mean(),
            pl.col("rmse").std().alias("rmse_sd"),
            pl.col("rmse").max().alias("rmse_largest"),
            pl.col(
                "rmse_centred", "rmse_fitted", "rmse_discrimination", "correlation", "precision", "converged"
            ).mean(),
            pl.col("cpu_seconds").sum(),
        )
        .sort(keys)
    )
