"""Reasons why a recipe's forecast is doubtful, in words."""

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.scaling.pretraining.ability_law import AbilityLaws
from itembank.scaling.pretraining.forecasts import FittedCurveLaw
from itembank.scaling.pretraining.runs import Runs
from itembank.scaling.pretraining.scenario_abilities import ScenarioAbilities

CLEAR_FALL = 2.0
"""Standard errors by which an ability must fall from one size to the next to be called a fall."""

FEW_POINTS = 4
"""Parameters of both curve laws."""
WIDE_STARTS = 0.02
"""Standard deviation of a score over starts, at the largest fitted size's tenfold, that is worth a word."""


def ability_notes(laws: AbilityLaws, abilities: ScenarioAbilities, runs: Runs) -> tuple[str, ...]:
    """Say what is doubtful about every recipe's ability law, n_recipes texts."""
    theta, variance = runs.of_finals(abilities.theta), runs.of_finals(abilities.variance)
    with np.errstate(invalid="ignore"):
        fall = -np.diff(theta, axis=1)
        is_fall = fall > CLEAR_FALL * np.sqrt(variance[:, 1:] + variance[:, :-1] + 2.0 * laws.residual_variance)
    notes = []
    for number in range(len(runs.recipes)):
        parts = [_lacking(runs, number)]
        slope, error = laws.slope[number], laws.slope_error[number]
        if slope <= 0.0:
            parts.append(f"ability does not rise with compute (slope {slope:.3f}, standard error {error:.3f})")
        elif slope < CLEAR_FALL * error:
            parts.append(f"whether ability rises with compute is open (slope {slope:.3f}, standard error {error:.3f})")
        if is_fall[number].any():
            parts.append(f"ability falls clearly at {int(is_fall[number].sum())} of {runs.n_sizes[number] - 1} steps")
        notes.append("; ".join(part for part in parts if part))
    return tuple(notes)


def curve_notes(
    law: FittedCurveLaw, scores: FloatArray, runs: Runs, *, losses: FloatArray | None = None
) -> tuple[str, ...]:
    """Say what is doubtful about every recipe's curve, n_recipes texts."""
    values = runs.of_finals(scores)
    largest = law.largest[np.isfinite(law.largest)]
    spread = law.forecast(np.array([largest.max() + np.log(10.0)]), 0.95).spread[:, 0]
    notes = []
    for number in range(len(runs.recipes)):
        parts = [_lacking(runs, number)]
        known = values[number][np.isfinite(values[number])]
        if known.size >= 2 and known[-1] < known[0]:
            parts.append(f"the score falls with compute, from {known[0]:.3f} to {known[-1]:.3f}")
        if known.size and known.size < FEW_POINTS:
            parts.append(f"{known.size} sizes for {FEW_POINTS} parameters")
        if spread[number] > WIDE_STARTS:
            parts.append(f"starts disagree by {spread[number]:.3f} (standard deviation) at ten times the largest size")
        if losses is not None:
            known_losses = runs.of_finals(losses)[number]
            known_losses = known_losses[np.isfinite(known_losses)]
            if known_losses.size >= 2 and known_losses[-1] > known_losses[0]:
                parts.append("the loss rises with compute")
        notes.append("; ".join(part for part in parts if part))
    return tuple(notes)


def lacking_notes(runs: Runs) -> tuple[str, ...]:
    """Say which recipes have too few sizes, n_recipes texts."""
    return tuple(_lacking(runs, number) for number in range(len(runs.recipes)))


def _lacking(runs: Runs, number: int) -> str:
    count = int(runs.n_sizes[number])
    return "" if runs.is_enough[number] else f"no law: {count} sizes"
