"""`Assessor`: a way to choose items and to predict tasks from the answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from itembank.checks import check_one_of
from itembank.errors import ParameterError
from itembank.selection.criteria import CRITERIA as KNOWN_CRITERIA
from itembank.studies.choices import MethodChoice, resolve_choice

Paradigm = Literal["prediction", "selection", "adaptation"]

BASELINES = ("task-mean", "task-mean-eb", "ridge")
"""Predictors without an item model."""
CRITERIA = ("fisher", "trace", "d-optimal", "a-optimal", "v-optimal", "kl")
"""Selectors that rank items by what their answers would tell of ability."""
ANCHORS = ("anchor-binary", "anchor-irt")
UNINFORMED = ("random", "uniform", "min-cost")
"""Selectors that no item model enters."""
STATIC = (*UNINFORMED, *CRITERIA, *ANCHORS)


@dataclass(frozen=True, slots=True)
class Assessor:
    """A way to choose items and a way to predict from the answers (WILD 6.2).

    Attributes
    ----------
    predictor : str
        Name of one of the study's item models, or 'task-mean', 'task-mean-eb', 'ridge'.
    paradigm : {'prediction', 'selection', 'adaptation'}
        Random items; items chosen at once, the same for all tested models; items chosen one at a time for each.
    selector : str
        Which items: 'random', 'uniform', 'min-cost', a criterion, 'anchor-binary' or 'anchor-irt'.
    per_cost : bool
        Divide a criterion by the item's expected cost (WILD 5.3, "-tau").
    design : str
        Item model that the selector looks at; the predictor's if empty.
    options : mapping
        Of the criterion, such as ``of`` of 'v-optimal'; `n_restarts` of anchors.
    name : str
        In results; made of the rest when empty.
    """

    predictor: str
    paradigm: Paradigm = "prediction"
    selector: str = "random"
    per_cost: bool = False
    design: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        """Check what can be checked without the study, and make a name."""
        for one in ("predictor", "selector", "design", "name"):
            if not isinstance(getattr(self, one), str):
                raise ParameterError(f"{one} of an assessor must be a text, got {getattr(self, one)!r}.")
        check_one_of("paradigm of an assessor", self.paradigm, get_args(Paradigm))
        known = {"prediction": ("random",), "selection": STATIC, "adaptation": CRITERIA}[self.paradigm]
        check_one_of(f"selector of {self.paradigm}", self.selector, known)
        if self.per_cost and self.selector not in CRITERIA:
            raise ParameterError(f"per_cost divides a criterion by cost, which {self.selector!r} is not.")
        if self.selector in CRITERIA:  # a study would come upon a wrong option only after its item models
            resolve_choice(MethodChoice(self.selector, self.options), KNOWN_CRITERIA)
        if self.is_designed and not self.design_model:
            raise ParameterError(
                f"{self.selector!r} looks at an item model, and {self.predictor!r} has none: give it a design, "
                "the name of an item model."
            )
        if not self.name:
            object.__setattr__(self, "name", self._made_name())

    @property
    def is_designed(self) -> bool:
        """Whether the selector looks at an item model."""
        return self.selector in (*CRITERIA, "anchor-irt")

    @property
    def design_model(self) -> str:
        """Item model that the selector looks at; empty for none."""
        if not self.is_designed:
            return ""
        return self.design or ("" if self.predictor in BASELINES else self.predictor)

    @property
    def selection_key(self) -> tuple[Any, ...]:
        """What the choice of items depends on: assessors that agree here are given the same items."""
        options = tuple(sorted((key, repr(value)) for key, value in self.options.items()))
        kind = "adaptation" if self.paradigm == "adaptation" else "selection"
        return kind, self.selector, self.per_cost, self.design_model, options

    def _made_name(self) -> str:
        cost = "/cost" if self.per_cost else ""
        how = "adaptive " if self.paradigm == "adaptation" else ""
        return f"{self.predictor}, {how}{self.selector}{cost}"
