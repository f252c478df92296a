"""When a session ends: hard budgets, and rules of precision."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from itembank.checks import check_whole, from_points, is_number
from itembank.errors import ParameterError
from itembank.responses.score_names import OVERALL

SessionInterval = Literal["calibrated", "model-based", "design"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Hard limits: no item is asked whose expected cost does not fit what is left.

    Attributes
    ----------
    n_items : int or None
        Answers at most, those still pending and those never asked among them; failed attempts do not count.
    costs : mapping of unit to amount
        At most this much of each unit ('tokens', or a cost that the bank's responses have). An answer or
        a failed attempt counts at its reported cost, or at what was expected if none was reported; so do items still
        pending. Expected is what past models paid at the model's own price level; the last item may cost more, and
        pass the maximum.
    """

    n_items: int | None = None
    costs: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_items is not None:
            check_whole("a budget of items", self.n_items, least=1)
        object.__setattr__(self, "n_items", None if self.n_items is None else int(self.n_items))
        for unit, amount in self.costs.items():
            _check_number(f"a budget of {unit}", amount, above=0.0, below=math.inf)
        object.__setattr__(self, "costs", {str(unit): float(amount) for unit, amount in self.costs.items()})


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a score lies above a threshold: decided when either answer is probable enough.

    Attributes
    ----------
    target : str
        Name of the score.
    threshold : float or None
    model : str or None
        Instead of a threshold: a past model, whose score is the threshold.
    confidence : float
        Probability, in (0.5, 1), from which on the question is settled.
    """

    target: str = OVERALL
    threshold: float | None = None
    model: str | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.model is None):
            raise ParameterError(
                "a decision needs either a threshold or a past model to compare with, got "
                f"threshold={self.threshold!r} and model={self.model!r}."
            )
        if self.threshold is not None:
            advice = from_points(self.threshold)
            _check_number("threshold", self.threshold, above=0.0, below=1.0, inclusive=True, advice=advice)
        _check_number("confidence", self.confidence, above=0.5, below=1.0)


@dataclass(frozen=True, slots=True)
class Stopping:
    """Rules of precision: the session stops as soon as one of them holds.

    Attributes
    ----------
    ability_error : float or None
        Standard error of ability, at most this in every dimension.
    half_width : number, or mapping of score to half-width
        One rule: the intervals of all these scores are this narrow, or narrower. A number is of the overall score;
        it is kept as a mapping.
    decision : Decision or None
    level : float
        Of the intervals.
    min_items : int
        Answers before any of the rules may end the session; where constraints ask for a least number of items of a
        scenario, these come first as well.
    """

    ability_error: float | None = None
    half_width: Mapping[str, float] | float = field(default_factory=dict)
    decision: Decision | None = None
    level: float = 0.95
    min_items: int = 0

    def __post_init__(self) -> None:
        if self.ability_error is not None:
            _check_number("ability_error", self.ability_error, above=0.0, below=math.inf)
        widths = self.half_widths
        for score, width in widths.items():
            _check_number(f"half-width of {score!r}", width, above=0.0, below=1.0, advice=from_points(width))
        _check_number("level", self.level, above=0.0, below=1.0)
        check_whole("min_items", self.min_items, least=0)
        object.__setattr__(self, "min_items", int(self.min_items))
        object.__setattr__(self, "half_width", {str(score): float(width) for score, width in widths.items()})

    @property
    def half_widths(self) -> Mapping[str, float]:
        """Half-width by score."""
        return self.half_width if isinstance(self.half_width, Mapping) else {OVERALL: self.half_width}

    @property
    def has_rules(self) -> bool:
        """Whether any precision is asked for."""
        return self.ability_error is not None or bool(self.half_width) or self.decision is not None

    @property
    def needs_scores(self) -> bool:
        """Whether a rule looks at scores."""
        return bool(self.half_width) or self.decision is not None


def _check_number(
    name: str, value: object, *, above: float, below: float, inclusive: bool = False, advice: str = ""
) -> None:
    """Raise `ParameterError` unless the value is a number between the bounds."""
    if is_number(value) and (above < value < below or (inclusive and value in {above, below})):
        return
    if inclusive:
        wanted = f"from {above:g} to {below:g}"
    else:
        wanted = f"above {above:g}" + (f" and below {below:g}" if math.isfinite(below) else "")
    raise ParameterError(f"{name} must be a number {wanted}, got {value!r}.{advice}")
