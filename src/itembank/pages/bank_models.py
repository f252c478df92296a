"""The past models of a bank, with their scores."""

from typing import Any

import numpy as np
import polars as pl

from itembank.bank.ability_axis import AbilityAxis
from itembank.bank.banks import Bank
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Column, Data, Section, Table, Text
from itembank.pages.theme import interval_words, plural, points
from itembank.responses.model_features import model_dates

MOST_SCENARIOS = 12
"""Columns of scenario scores that the table of models has room for."""


def models_section(bank: Bank) -> Section | None:
    """Return the past models' scores; None for a bank that holds no model."""
    if bank.n_models == 0:
        return None
    scores = bank.best_known_scores
    rows = np.flatnonzero(np.isfinite(scores[:, -1]))
    if rows.size == 0:
        return Section("Past models", (Text("No past model answered enough questions for an overall score."),))
    rows = rows[np.argsort(-scores[rows, -1], kind="stable")]
    models = bank.responses.models[rows.tolist()]
    told: list[tuple[Column, Any]] = [
        (Column("model", "Model", "id"), models["model_id"].to_list()),
        (Column("score", "Score", "score", 1, "The overall score"), scores[rows, -1]),
    ]
    if bank.calibration.is_fitted:
        axis, where = AbilityAxis.of(bank), "On the axis of the item map, in standard deviations"
        told += [
            (Column("ability", "Ability", "number", 2, where), axis.positions[rows]),
            (Column("ability_error", "±", "number", 2, "Standard error of the ability"), axis.errors[rows]),
        ]
    dates = model_dates(models)
    if dates is not None:
        told.append((Column("date", dates.name), dates.cast(pl.String).to_list()))
    if 1 < bank.targets.n_scenarios <= MOST_SCENARIOS:
        names = enumerate(bank.targets.scenarios)
        told += [(Column(f"score_{j}", name, "score"), scores[rows, j]) for j, name in names]
    columns = {column.name: values for column, values in told}
    note = "Scores are of all questions. Answers that are missing count as missing, not as wrong."
    table = Table("Past models", Data("models", columns), tuple(column for column, _ in told), note=note)
    lead = (
        f"{plural(rows.size, 'past model')}, with {scores_in_words(scores[rows, -1])}. The best is "
        f"{columns['model'][0]}."
    )
    return Section("Past models", (table,), lead)


def scores_in_words(scores: FloatArray) -> str:
    """Write the range of some scores: 'scores from 45.4 to 83.9 points'."""
    low, high = float(scores.min()), float(scores.max())
    return f"scores from {interval_words(low, high)} points" if high > low else f"a score of {points(low)}"
