"""Priors for a model before its first answer: one frozen spec for each kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from itembank.checks import check_positive
from itembank.errors import ParameterError
from itembank.methods import MethodTable

BANK = "bank"

Known: TypeAlias = str | int | float | bool
"""A value of a column of the model table."""


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
