"""Choices of a gate."""

from dataclasses import dataclass
from typing import get_args

from itembank.checks import check_fraction, check_one_of, check_whole, from_points
from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import QUESTIONS, DifferenceEstimand, check_estimand
from itembank.responses.error_kinds import Errors


@dataclass(frozen=True, slots=True)
class GateSpec:
    """What a gate lets pass, and how often it may be wrong.

    Attributes
    ----------
    margin : float
        Drop of the score, from 0 to 1, that must not get through.
    false_alarm : float
        A candidate whose true drop is at most `tolerance` fails with at most this probability, over all looks.
    miss : float
        A candidate whose true drop is `margin` or more passes with at most this probability, over all looks.
    tolerance : float, optional
        Drop that is healthy; half of the margin by default. With the margin itself nothing fails that is not proved to
        be worse than the margin, which takes more items. Between the two either verdict is right.
    both_sides : bool
        Whether a rise counts as a drop does: are two harnesses, or two prompts, the same within the margin?
    level : float
        Of the interval that is shown; over all looks, too.
    estimand : {'run', 'repeated', 'questions'}, optional
        What the difference is of. 'run': this run, on exactly these items; exact once all are answered. 'repeated': the
        mean over repeated runs on these items; needs repeated attempts. 'questions': what other items of this kind
        would show. By default 'questions'; 'run' of a gate in stages, and with a bank if either model answered fewer
        than nine tenths of its items.
    cluster : str
        Column of the item table whose items count as one draw: documents, or conversations.
    first_look : int, optional
        Items of the first stage; 25 with a bank, else 50.
    growth : float
        By how much the number of items grows from look to look.
    max_items : int, optional
        Most items of a gate in stages; all by default.
    seed : int
        Of the order of items.
    errors : {'missing', 'wrong', 'bounds'}, optional
        What answers count as that either side lost (`ResponseMatrix.lost`): nothing, and the verdict is undecided if it
        would be another one were they wrong; wrong answers; or whichever, and there is a verdict if it is the same in
        the worst case and the best. As the results say by default, else 'missing'.
    max_lost : float, optional
        Nothing passes of which either side lost a larger part of its answers.
    """

    margin: float = 0.02
    false_alarm: float = 0.05
    miss: float = 0.05
    tolerance: float | None = None
    both_sides: bool = False
    level: float = 0.95
    estimand: DifferenceEstimand | None = None
    cluster: str = ""
    first_look: int | None = None
    growth: float = 1.4
    max_items: int | None = None
    seed: int = 0
    errors: Errors | None = None
    max_lost: float | None = None

    def __post_init__(self) -> None:
        check_fraction("margin", self.margin, is_score=True)
        check_fraction("level", self.level)
        for name in ("false_alarm", "miss"):
            check_fraction(name, getattr(self, name))
            if getattr(self, name) >= 0.5:
                raise ParameterError(f"{name} must be below 0.5, got {getattr(self, name)!r}.")
        if self.tolerance is not None and not 0.0 <= self.tolerance <= self.margin:
            raise ParameterError(
                f"tolerance must lie between 0 and the margin, {self.margin:g}, got {self.tolerance!r}."
                f"{from_points(self.tolerance)}"
            )
        if self.estimand is not None:
            check_estimand(self.estimand, DifferenceEstimand, former=QUESTIONS)
        for name in ("first_look", "max_items"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=2)
        check_whole("seed", self.seed, least=0)
        if self.errors is not None:
            check_one_of("errors", self.errors, get_args(Errors))
        if self.max_lost is not None and not 0.0 <= self.max_lost <= 1.0:
            raise ParameterError(
                f"max_lost must be a share between 0 and 1, got {self.max_lost!r}.{from_points(self.max_lost)}"
            )
        if not 1.05 <= self.growth <= 10.0:
            raise ParameterError(f"growth must lie between 1.05 and 10, got {self.growth!r}.")

    @property
    def healthy(self) -> float:
        """The drop that is healthy."""
        return self.margin / 2.0 if self.tolerance is None else self.tolerance

    @property
    def error_rates(self) -> tuple[float, float, float]:
        """One-sided error probabilities of a miss, a false alarm, and one end of the interval that is shown."""
        return self.miss, self.false_alarm, (1.0 - self.level) / 2.0
