"""`LinkedItems`: new items on a bank's scale, with all that says how far to trust them."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from itembank.irt.abilities import expected_difficulties
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.tabular import Tabular

LinkMethod = Literal["fixed", "stocking-lord"]

NORMAL_95 = 1.959963985
"""Quantile of the interval of a difficulty."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """The old items of a link."""

    item_ids: tuple[str, ...]
    displacement: FloatArray  # (n_old,): Logits by which an item is easier for the linking models than the bank says
    standard_error: FloatArray  # (n_old,)
    is_unlinked: BoolArray  # (n_old,): Items that moved too far to link

    @property
    def unlinked(self) -> tuple[str, ...]:
        """Ids of the items that do not link."""
        return tuple(name for name, is_out in zip(self.item_ids, self.is_unlinked, strict=True) if is_out)


@dataclass(frozen=True, slots=True)
class OtherLink:
    """The line ``ability = slope * free ability + intercept`` of Stocking and Lord, and what it says of new items."""

    slope: float
    intercept: float
    # Of the mean score on the new items from that by fixed parameters: root mean square over the bank's abilities, on
    # the scale of scores.
    difference: float


@dataclass(frozen=True, slots=True, repr=False)
class LinkedItems(Tabular):
    """New items on the scale of a bank; `rows` gives them one a row.

    Attributes
    ----------
    bank_id : str
    item_ids, scenarios : tuples of n_new names
    parameters : ItemParameters
        Of the new items. Their curves are expected ones: flatter where little is known.
    item_covariance : (n_new, n_dims + 1, n_dims + 1)
        Of (loadings, intercept).
    n_answers : (n_new,)
        Linking models that answered each new item.
    mean_response : (n_new,)
        Of the linking models.
    method : {'fixed', 'stocking-lord'}
    model_ids : tuple of n_models ids
        The linking models.
    abilities : (n_models, n_dims)
        Of the linking models.
    anchors : Anchors
    linking_error : float
        Standard error that the link adds to the mean score on the new items, on the scale of scores: root mean square
        over the bank's abilities. The larger of two: a jackknife over the linking models; and what as many of the
        bank's models would miss by if items drawn from its own were the new ones.
    covered : float
        Part of the range of the bank's models' scores that the linking models span.
    other : OtherLink or None
        Stocking and Lord's link of the same answers, in one dimension.
    further_models : tuple of ids
        Models of the bank that would span the rest of the range, if they were run on the new items.
    converged : bool
    """

    bank_id: str
    item_ids: tuple[str, ...]
    scenarios: tuple[str, ...]
    parameters: ItemParameters
    item_covariance: FloatArray
    n_answers: IntArray
    mean_response: FloatArray
    method: LinkMethod
    model_ids: tuple[str, ...]
    abilities: FloatArray
    anchors: Anchors
    linking_error: float
    covered: float
    other: OtherLink | None
    further_models: tuple[str, ...]
    converged: bool

    @property
    def n_models(self) -> int:
        """Number of linking models."""
        return len(self.model_ids)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of each item's (loadings, intercept), (n_new, n_dims + 1)."""
        result: FloatArray = np.sqrt(np.einsum("ijj->ij", self.item_covariance))
        return result

    def rows(self) -> list[dict[str, Any]]:
        """One record an item: its parameters with errors, in one dimension its difficulty with a 95 % interval."""
        loadings, errors = self.parameters.loadings, self.standard_errors
        columns: dict[str, Any] = {
            "item_id": self.item_ids,
            "scenario": self.scenarios,
            "n_answers": self.n_answers.tolist(),
            "mean_response": self.mean_response.tolist(),
        }
        for k in range(loadings.shape[1]):
            columns |= {f"loading_{k + 1}": loadings[:, k].tolist(), f"loading_{k + 1}_error": errors[:, k].tolist()}
        columns |= {"intercept": self.parameters.intercept.tolist(), "intercept_error": errors[:, -1].tolist()}
        if loadings.shape[1] == 1:
            found = expected_difficulties(loadings[:, 0], self.parameters.intercept, self.item_covariance)
            reach = NORMAL_95 * found.standard_error
            columns |= {
                "difficulty": found.value.tolist(),
                "low": (found.value - reach).tolist(),
                "high": (found.value + reach).tolist(),
            }
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
