"""`SessionSpec`: everything a session depends on besides its bank, its model and its events."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self, get_args

from itembank.bank.costs import CostUnit, as_cost_unit
from itembank.checks import check_one_of, check_whole
from itembank.errors import DataError, ParameterError, shown
from itembank.estimation.estimator_specs import RUN, Estimand, check_estimand
from itembank.files.documents import Named, errors_name, fields_of, read_choices
from itembank.responses.error_kinds import Errors
from itembank.responses.score_names import OVERALL
from itembank.selection.criteria import CRITERIA, INFORMATION, Criterion, DrawnItem, criterion_of
from itembank.selection.greedy import Constraints
from itembank.sessions.limits import Budget, SessionInterval, Stopping
from itembank.tables import plural

CALIBRATED: Final = "calibrated"
MODEL_BASED: Final = "model-based"
BY_DRAW: Final = "design"

CUSTOM = "custom"
"""Name of the score of a session whose target is given as item weights."""
_NAMED: Named = {"criterion": (CRITERIA, "name")}


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """How a session chooses items, what it estimates, and when it stops; JSON keeps it whole (`to_dict`, `from_dict`).

    Attributes
    ----------
    criterion : Criterion or str
        What the next item is chosen by: a name of `CRITERIA` in `itembank.selection.criteria`, or a spec with its
        choices. A criterion of information given by its name is divided by cost if `cost` is given; one given as a
        spec when it says `per_cost`.
    cost : CostUnit, str or None
        Unit of expected cost.
    target : str or mapping of item id to weight
        The score that is wanted: 'overall', a scenario, or any weighted mean of items. Weights are scaled to sum to
        one, and the score is then called 'custom'. Or 'mean_win_rate', or an external score that the bank keeps: items
        are then chosen for the overall score, and the other replaces it.
    budget : Budget
        Hard limits.
    stopping : Stopping
        Rules of precision.
    constraints : Constraints
    n_start : int or None
        Number of first items that are the same for every model: those of `select`, which tell apart models near and
        beyond the best past ones, too. By default two thirds of the budget's items (20 without one) where the criterion
        is 'v-optimal', nothing costs and no items are weighed; else none.
    seed : int
        Of all chance in the session.
    interval : {'calibrated', 'model-based', 'design'} or None
        'design': from how the items were drawn; of the criterion 'drawn', and of no other.
        'calibrated', the default of all others: estimates and the width of intervals are learnt from cross-validated
        sessions of past models (`past_sessions`). With fewer than ten past models, or 'model-based': from the item
        model alone (p-IRT), whose intervals are too narrow after many answers.
    errors : {'missing', 'wrong', 'bounds'} or None
        What an item counts as that failed and is skipped: nothing; a wrong answer; or nothing in the estimate, with an
        interval that holds whether it would have been right or wrong. Another item is asked in its place all the same.
        None: what lost answers count as in the bank, else nothing.
    estimand : {'run', 'repeated'}
        Which score is meant, see `estimate`: rules of precision wait for the interval of that one.
    """

    criterion: Criterion | str = "v-optimal"
    _: KW_ONLY
    cost: CostUnit | str | None = None
    target: str | Mapping[str, float] = OVERALL
    budget: Budget = field(default_factory=Budget)
    stopping: Stopping = field(default_factory=Stopping)
    constraints: Constraints = field(default_factory=Constraints)
    n_start: int | None = None
    seed: int = 0
    interval: SessionInterval | None = None
    estimand: Estimand = RUN
    errors: Errors | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without the bank."""
        unit = None if self.cost is None else as_cost_unit(self.cost)
        criterion = self.criterion
        if isinstance(criterion, str):
            is_per_cost = unit is not None and criterion in INFORMATION
            criterion = criterion_of(criterion, per_cost=True if is_per_cost else None)
        object.__setattr__(self, "cost", unit)
        object.__setattr__(self, "criterion", CRITERIA.resolve(criterion))
        for name in ("n_start", "seed"):
            value = getattr(self, name)
            if value is not None or name == "seed":
                check_whole(name, value, least=0)
                object.__setattr__(self, name, int(value))
        is_drawn = isinstance(self.criterion, DrawnItem)
        if self.interval is None:
            object.__setattr__(self, "interval", BY_DRAW if is_drawn else CALIBRATED)
        check_one_of("interval", self.interval, get_args(SessionInterval))
        if is_drawn != (self.interval == BY_DRAW):
            raise ParameterError(
                "criterion 'drawn' goes with interval 'design', and no other does, got interval "
                f"{self.interval!r}. Leave the interval out."
            )
        if is_drawn:
            self._check_drawn()
        check_estimand(self.estimand, Estimand)
        if self.errors is not None:
            check_one_of("errors", self.errors, get_args(Errors))
        if not isinstance(self.target, str):
            weights = {str(item): float(weight) for item, weight in self.target.items()}
            bad = [item for item, weight in weights.items() if not 0.0 <= weight < math.inf]
            if bad or not sum(weights.values()) > 0.0:
                got = (
                    f"another for {plural(len(bad), 'item')}: {shown(bad)}"
                    if bad
                    else f"{plural(len(weights), 'item')} and none above zero"
                )
                raise ParameterError(
                    f"weights of a target must be finite numbers >= 0 with one above zero at least, got {got}."
                )
            object.__setattr__(self, "target", weights)

    def _check_drawn(self) -> None:
        """Refuse what would leave items without a chance to be drawn, or with an unknown one."""
        limits = self.constraints
        refused = {
            "cost": self.cost is not None,
            "n_start": bool(self.n_start),
            "constraints.at_least": limits.at_least not in (0, {}),
            "constraints.at_most": limits.at_most is not None,
            "constraints.excluded": bool(limits.excluded),
            "constraints.randomesque": limits.randomesque > 1,
        }
        given = [name for name, is_given in refused.items() if is_given]
        if given:
            raise ParameterError(
                "criterion 'drawn' draws from all items of the target, with probabilities that it must know: it does "
                f"not go with {shown(given)}. Leave that out, or take another criterion."
            )

    @property
    def wanted(self) -> str:
        """Name of the score that the session is about."""
        return self.target if isinstance(self.target, str) else CUSTOM

    @property
    def cost_unit(self) -> CostUnit | None:
        """The unit of expected cost."""
        return None if self.cost is None else as_cost_unit(self.cost)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "criterion": CRITERIA.to_plain(CRITERIA.resolve(self.criterion), "name")}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make a spec from the result of `to_dict`.

        Raises
        ------
        DataError
            When the data are not those of a spec.
        """
        names = [one.name for one in fields(cls)]
        if not isinstance(plain, Mapping) or set(plain) != set(names):
            got = f"{plain!r}"
            if isinstance(plain, Mapping):
                more, lacking = sorted(set(map(str, plain)) - set(names)), sorted(set(names) - set(plain))
                got = f"others {shown(more)}, and none of {shown(lacking)}; it is of another release"
            raise DataError(f"settings of a session must have the fields {shown(names, limit=len(names))}, got {got}.")
        try:
            return cls(**fields_of(plain, cls, _NAMED))
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise DataError(f"settings of a session must be those of this release: {error}") from error


def read_session_fields(path: Path) -> dict[str, Any]:
    """Read some fields of a `SessionSpec` from a TOML file; raises as `read_choices`."""
    found = read_choices(path, SessionSpec, _NAMED)
    with errors_name(path):
        SessionSpec(**found)
    return found
