"""The ability prior of a session: of all calibration models, of a group of them, or by regression on what is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.checks import check_positive
from itembank.errors import DataError, DataWarning, ParameterError, shown, warn
from itembank.irt.parameters import AbilityPrior
from itembank.methods import MethodTable
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.model_features import ModelFeatures, model_column

BANK = "bank"

Known: TypeAlias = str | int | float | bool
"""A value of a column of the model table."""
TABLE = "the bank's model table"


@dataclass(frozen=True, slots=True)
class GroupPrior:
    """The calibration models of one group: those that have a value in a column of the bank's model table.

    Attributes
    ----------
    column : str
    value : text or number
    bank_models : float
        How many models' worth the bank's own prior counts for, so that a group of few does not say too much.
    """

    column: str
    value: Known
    bank_models: float = 5.0

    def __post_init__(self) -> None:
        """Check the choices."""
        object.__setattr__(self, "value", _plain(self.value))
        check_positive("bank_models", self.bank_models)


@dataclass(frozen=True, slots=True)
class RegressionPrior:
    """Prediction from columns of the bank's model table, by ridge regression of the calibration models' abilities.

    Attributes
    ----------
    columns : tuple of column names
        Dates count in days, sizes by their logarithm (positive numbers that span a factor of 20 and are less skewed
        so), other numbers as they are, text and truth values as categories.
    known : mapping of column to value
        The new model's. A column it lacks counts as average.
    penalty : float
        On the squared coefficients of standardised columns.
    bank_models : float
        How many models' worth the bank's own covariance counts for in that of the residuals.
    """

    columns: tuple[str, ...]
    known: Mapping[str, Known] = field(default_factory=dict)
    penalty: float = 1.0
    bank_models: float = 5.0

    def __post_init__(self) -> None:
        """Check the choices."""
        columns: object = self.columns
        if not columns or isinstance(columns, str):
            raise ParameterError(f"columns must name one column or more, got {columns!r}.")
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "known", {name: _plain(value) for name, value in self.known.items()})
        unknown = [name for name in self.known if name not in self.columns]
        if unknown:
            raise ParameterError(f"known must be of the columns {self.columns}, got {unknown} besides.")
        check_positive("penalty", self.penalty)
        check_positive("bank_models", self.bank_models)


PriorSpec: TypeAlias = str | GroupPrior | RegressionPrior
"""'bank' (the calibration models' distribution), or a spec."""


PRIORS: MethodTable[GroupPrior | RegressionPrior] = MethodTable(
    "prior", {"group": GroupPrior, "regression": RegressionPrior}
)


def checked_prior(prior: PriorSpec) -> PriorSpec:
    """Return the spec, or raise `ParameterError` for anything else."""
    if prior == BANK or isinstance(prior, GroupPrior | RegressionPrior):
        return prior
    raise ParameterError(f"prior must be 'bank', a GroupPrior or a RegressionPrior, got {prior!r}.")


def _plain(value: Any) -> Known:
    """Return a value as JSON can keep it: a number of numpy's as Python's."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, str | int | float):
        return plain
    raise ParameterError(f"what is known of a model must be text, a number or a truth value, got {value!r}.")


@dataclass(frozen=True, slots=True)
class KnownModels:
    """The calibration models, as far as priors and comparisons need them."""

    models: pl.DataFrame  # The bank's model table
    abilities: FloatArray  # (n_models, n_dims)
    ability_covariance: FloatArray  # (n_models, n_dims, n_dims): Zero where unknown
    prior: AbilityPrior  # The bank's own

    @classmethod
    def of_bank(cls, bank: Bank) -> Self:
        """Take the parts of a bank that priors need."""
        calibration = bank.calibration
        covariance = np.nan_to_num(calibration.ability_covariance)
        return cls(bank.responses.models, calibration.abilities, covariance, calibration.prior)


def ability_prior(known: KnownModels, spec: PriorSpec) -> AbilityPrior:
    """Find the prior that a spec stands for."""
    match checked_prior(spec):
        case GroupPrior() as group:
            rows = group_rows(known.models, group)
            if rows.size == 0:
                values = known.models[group.column].unique(maintain_order=True).drop_nulls().to_list()
                raise DataError(
                    f"a group must hold a calibration model, and none has {group.column} = {group.value!r}. There are "
                    f"{shown(values)}."
                )
            return group_prior(
                known.abilities[rows], known.ability_covariance[rows], known.prior, bank_models=group.bank_models
            )
        case RegressionPrior() as regression:
            features = ModelFeatures.fit(known.models, regression.columns)
            new = pl.DataFrame({name: pl.Series(name, [regression.known.get(name)]) for name in regression.columns})
            return regression_prior(
                known.abilities,
                known.ability_covariance,
                features.of(known.models),
                features.of(new)[0],
                known.prior,
                penalty=regression.penalty,
                bank_models=regression.bank_models,
            )
        case _:
            return known.prior


def warn_of_unheard_values(models: pl.DataFrame, spec: PriorSpec) -> None:
    """Warn of categories that no calibration model has: they count as average, and may be misspelt."""
    if not isinstance(spec, RegressionPrior):
        return
    for name, value in spec.known.items():
        column = model_column(models, name, TABLE)
        if not (column.dtype.is_numeric() or _matches(column, value).any()):
            values = column.unique(maintain_order=True).drop_nulls().to_list()
            warn(
                f"no calibration model has {name} = {value!r}, so that it tells nothing of ability. There are "
                f"{shown(values)}; check the spelling.",
                DataWarning,
            )


def group_rows(models: pl.DataFrame, group: GroupPrior) -> IntArray:
    """Rows of the models that belong to a group, (n_members,); `DataError` when there is no such column."""
    return np.flatnonzero(_matches(model_column(models, group.column, TABLE), group.value).to_numpy())


def group_prior(
    abilities: FloatArray,  # (n_models, n_dims): m_l
    ability_covariance: FloatArray,  # (n_models, n_dims, n_dims): C_l
    bank: AbilityPrior,
    *,
    bank_models: float,  # s
) -> AbilityPrior:
    """Mean and covariance of a group's abilities, shrunk to the bank's prior.

    Those of the mixture of n models with ``theta_l ~ N(m_l, C_l)`` and of s more distributed as the bank's prior
    ``N(mu, Sigma)`` (the posterior mean under a normal-inverse-Wishart prior, Gelman et al. 2013, 3.6):

        mean       = (s mu + sum_l m_l) / (s + n)
        covariance = [s (Sigma + d d') + sum_l C_l + (m_l - mean)(m_l - mean)'] / (s + n),   d = mu - mean
    """
    total = bank_models + abilities.shape[0]
    mean = (bank_models * bank.mean + abilities.sum(axis=0)) / total
    # the s models of the bank's prior lie around mu, not around the new mean: d d' is their squared distance from it
    centred, shift = abilities - mean, bank.mean - mean
    spread = (
        bank_models * (bank.covariance + np.outer(shift, shift)) + centred.T @ centred + ability_covariance.sum(axis=0)
    )
    return AbilityPrior(mean, spread / total)


def regression_prior(
    abilities: FloatArray,  # (n_models, n_dims)
    ability_covariance: FloatArray,  # (n_models, n_dims, n_dims): C_l
    features: FloatArray,  # (n_models, n_features): X
    new: FloatArray,  # (n_features,): x, the new model's
    bank: AbilityPrior,
    *,
    penalty: float,  # The latter is s
    bank_models: float,
) -> AbilityPrior:
    """Predict the ability of a model by ridge regression on features of mean zero.

    With ``G = X'X + penalty``, coefficients ``B = G^-1 X'A`` of the centred abilities A and residuals ``R = A - X B``,

        mean       = mean of abilities + B'x
        covariance = (R'R + sum_l C_l + s Sigma) / (n - 1 - tr(X G^-1 X') + s) * (1 + 1/n + x' G^-1 x),

    the residuals' covariance drawn to the bank's Sigma as by s models, times what the uncertain mean and coefficients
    add (Bayesian linear regression with coefficients of variance 1 / penalty in units of the residuals').
    """
    n_models, n_features = features.shape
    centre = abilities.mean(axis=0)
    gram = features.T @ features + penalty * np.eye(n_features)
    coefficients = np.linalg.solve(gram, features.T @ (abilities - centre))
    residuals = abilities - centre - features @ coefficients
    used = float(np.trace(np.linalg.solve(gram, features.T @ features)))
    spread = residuals.T @ residuals + ability_covariance.sum(axis=0) + bank_models * bank.covariance
    freedom = max(n_models - 1.0 - used, 0.0) + bank_models
    wider = 1.0 + 1.0 / n_models + float(new @ np.linalg.solve(gram, new))
    return AbilityPrior(centre + new @ coefficients, spread / freedom * wider)


def _matches(column: pl.Series, value: Known) -> pl.Series:
    """Where a column has a value; a null is no value."""
    if column.dtype.is_numeric():
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            raise DataError(f"column {column.name!r} holds numbers, so that its value must be one too, got {value!r}.")
        return (column.cast(pl.Float64) == number).fill_null(False)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return (column.cast(pl.String) == text).fill_null(False)
