"""The loss that the two-step law goes through: bits per byte of the right answer."""

from collections.abc import Sequence

import numpy as np

from itembank.errors import DataError, shown
from itembank.numerics.arrays import FloatArray, mean_where_known
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.scenario_abilities import ScenarioScores

SMALLEST_PROBABILITY = 1e-6
"""As Beta likelihoods clip (`beta_ends.EPSILON`): a probability of zero counts as 20 bits, not as infinitely many."""


def checked_loss(loss: FloatArray, responses: ResponseMatrix) -> FloatArray:
    """Return losses (n_models, n_items) of these responses as numbers.

    Raises
    ------
    DataError
        When the shape is another, or a loss is zero, negative or infinite.
    """
    values = np.asarray(loss, dtype=np.float64)
    if values.shape != responses.responses.shape:
        raise DataError(
            f"loss must have a row a model and a column an item, {responses.responses.shape}, got {values.shape}."
        )
    bad = ~((values > 0.0) & np.isfinite(values)) & ~np.isnan(values)
    if bad.any():
        names = [responses.model_ids[row] for row in np.flatnonzero(bad.any(axis=1))]
        raise DataError(
            f"loss must be finite and > 0 (bits per byte), got {int(bad.sum())} others for {len(names)} models: "
            f"{shown(names)}."
        )
    return values


def scenario_losses(
    responses: ResponseMatrix, scores: Sequence[ScenarioScores], loss: FloatArray | None
) -> tuple[FloatArray | None, str]:
    """Mean loss of each model in each scenario, (n_models, n_scenarios), and a note on what stands for it.

    Without a loss, ``-log2`` of probabilities does; right and wrong answers and counts have none.
    """
    note = ""
    if loss is None:
        if responses.is_binary or responses.n_trials is not None:
            return None, "The two-step law needs a loss, which right or wrong answers and counts do not tell: left out."
        loss = -np.log2(np.clip(responses.responses, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY))
        note = "No loss was given: the two-step law goes through the mean of -log2 of the probabilities."
    means = [mean_where_known(loss[:, scenario.sampled], axis=1) for scenario in scores]
    return np.stack(means, axis=1), note
