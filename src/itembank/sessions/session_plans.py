"""`SessionPlan`: whether asking a model one item at a time pays, by trials on the bank."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.numerics.arrays import FloatArray
from itembank.planning.precision import expected_half_width
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class TriedDesign:
    """A way to ask n items, and the errors of estimates from them on calibration models left out.

    Attributes
    ----------
    name : str
        'at once', 'one by one', ...
    signed_errors : (n_models,)
        Estimate less truth of the target; NaN for models that some design was not tried on.
    command : str
        How to begin, for people.
    """

    name: str
    signed_errors: FloatArray
    command: str

    @property
    def errors(self) -> FloatArray:
        """Absolute errors, (n_models,)."""
        return np.abs(self.signed_errors)

    @property
    def error(self) -> float:
        """Mean absolute error; infinite where none is known."""
        return _mean(self.errors)[0]


@dataclass(frozen=True, slots=True, repr=False)
class SessionPlan(Tabular):
    """Ways to ask a new model n items, compared on calibration models left out.

    Attributes
    ----------
    n_items : int
    target : str
        The score that errors are of.
    level : float
        Of the half-widths.
    designs : tuple of TriedDesign
        The first is taken unless another is clearly better.
    best : TriedDesign
    bank_id : str
    """

    n_items: int
    target: str
    level: float
    designs: tuple[TriedDesign, ...]
    best: TriedDesign
    bank_id: str

    @property
    def message(self) -> str:
        """What to take, in a sentence."""
        first = self.designs[0]
        if self.best is not first:
            return f"Ask {self.best.name}: {_points(first.errors - self.best.errors)} closer than {first.name}."
        other = min(self.designs[1:], key=lambda design: design.error)
        if other.error >= first.error:
            return f"Ask {first.name}: no other way has smaller errors, and one run is the least work."
        return (
            f"Ask {first.name}: {other.name} comes {_points(first.errors - other.errors)} closer, too little to "
            "be sure of, and one run is the least work."
        )

    def rows(self) -> list[dict[str, Any]]:
        """One record for each way of asking; errors of scores from 0 to 1."""
        return [self._row(design) for design in self.designs]

    def _row(self, design: TriedDesign) -> dict[str, Any]:
        error, doubt = _mean(design.errors)
        gain, doubt_of_gain = _mean(self.designs[0].errors - design.errors)
        known = design.signed_errors[~np.isnan(design.signed_errors)]
        return {
            "design": design.name,
            "n_items": self.n_items,
            "mean_absolute_error": error,
            "standard_error": doubt,
            "gain": gain,
            "standard_error_of_gain": doubt_of_gain,
            "half_width": expected_half_width(known, level=self.level),
            "is_taken": design is self.best,
            "command": design.command,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the table."""
        return {
            "target": self.target,
            "n_items": self.n_items,
            "taken": self.best.name,
            "message": self.message,
            "command": self.best.command,
            "n_models": int(np.sum(~np.isnan(self.best.errors))),
            "level": self.level,
            "bank": self.bank_id,
        }


def _points(gains: FloatArray) -> str:
    """Write a mean with its standard error, in points."""
    gain, doubt = _mean(gains)
    return f"{100.0 * gain:.2f} ± {100.0 * doubt:.2f} points"


def _mean(values: FloatArray) -> tuple[float, float]:
    """Mean of the values that are known, and its standard error; infinite where none is."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return np.inf, np.inf
    return float(known.mean()), float(np.std(known, ddof=1) / np.sqrt(known.size)) if known.size > 1 else np.inf
