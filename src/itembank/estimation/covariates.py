"""Scores forecast from what is known of models before they answer: size, date, organisation, other scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from itembank.crossfit.folds import folds
from itembank.data.banks import Bank
from itembank.data.model_features import ModelFeatures
from itembank.errors import DataError
from itembank.estimation.point import calibration_scores
from itembank.estimation.regression.ridge import predict_ridge
from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """Scores by ridge regression on columns of the model tables, without any answer.

    Attributes
    ----------
    columns : tuple of str
    past : (n_models, n_targets)
        Of the calibration models, by regressions that have not seen them.
    new : (n_new, n_targets)
        Of the new models.
    """

    columns: tuple[str, ...]
    past: FloatArray
    new: FloatArray

    @classmethod
    def of(cls, bank: Bank, models: pl.DataFrame, columns: Sequence[str]) -> Self:
        """Forecast the scores of new models, and of each calibration model as if it were new.

        Categories are pooled partially: the ridge penalty, which has the least squared error on models left out one at
        a time, draws what is particular to a category of few models to nothing. Columns that say nothing of scores so
        leave little but the mean.

        Parameters
        ----------
        bank : Bank
        models : DataFrame of n_new rows
            The new models' table.
        columns : sequence of str

        Raises
        ------
        DataError
            When a table lacks a column, or too few models can be left out.
        """
        past_models = bank.responses.models
        features = ModelFeatures.fit(past_models, columns)
        new = features.of(models, "the new models' table")
        past = np.full(calibration_scores(bank).shape, np.nan)
        parts = folds(bank)
        if not parts:
            raise DataError(
                f"covariates need calibration models that can be left out in turn, the bank has {bank.n_models}. "
                "Leave the covariates out, or add models to the bank."
            )
        for fold in parts:
            known = fold.bank.responses.models
            seen = ModelFeatures.fit(known, columns)
            scores = calibration_scores(fold.bank)
            past[fold.held_out] = predict_ridge(seen.of(known), scores, seen.of(past_models[fold.held_out.tolist()]))
        return cls(tuple(columns), past, predict_ridge(features.of(past_models), calibration_scores(bank), new))

    def take(self, rows: IntArray) -> "Forecast":
        """Return the forecast of some of the new models."""
        return Forecast(self.columns, self.past, self.new[rows])
