"""The verb `plan` and its result: how many drawn items a question needs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import headline_names, refuse_version
from itembank.bank.banks import Bank
from itembank.checks import check_fraction, check_whole
from itembank.errors import OF_LEVEL, DataError, ParameterError, remedy, says_instead, shell_word
from itembank.estimation.estimands import run_variance
from itembank.estimation.estimator_specs import RUN, Estimand, check_estimand
from itembank.planning.precision import Precision, Prospect
from itembank.responses.score_names import OVERALL
from itembank.responses.sizes import usual_trials
from itembank.tables import points_of
from itembank.tabular import Note, Tabular

FEWEST = 2
"""Items of which the spread says something."""
STEPS = (1, 2, 3, 5)
"""Of the numbers of items of a table, within each power of ten."""
SMALLEST_SIZE = 10
LEAST_STEP = 1.25
"""From the last of them to all items: a nearer one would say nothing of its own."""
GOALS = {"half_width": "half_width", "difference": "detectable_difference"}
"""What may be asked for, and the measure of it."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Tabular):
    """Precision of estimates of a new model from n items that are drawn (`Drawn`).

    Attributes
    ----------
    target : str
    goal, goal_value
        What was asked for: 'half_width' or 'difference', and how small; None when only the table was.
    reached : bool or None
        Whether the goal is, by the items that may be run; None without one.
    at : Precision or None
        Of the fewest items that reach the goal, or of the most that may be run if these do not; None without a goal.
    table : tuple of Precision
        For 10, 20, 30, 50, 100, ... and the most items that may be run, and those of `at`.
    message : str
        The answer in a sentence; empty without a goal.
    level, power, estimand
    n_total : int
        Items that count in the score.
    bank_id : str
    """

    header = (
        *("target", "goal", "goal_value", "n_items", "half_width", "detectable_difference", "reached", "message"),
        *("estimand", "level", "power", "n_total", "bank=bank_id"),
    )

    target: str
    goal: str | None
    goal_value: float | None
    reached: bool | None
    at: Precision | None
    table: tuple[Precision, ...]
    message: str
    level: float
    power: float
    estimand: Estimand
    n_total: int
    bank_id: str
    n_trials: int

    @property
    def n_items(self) -> int | None:
        """Fewest items that reach the goal; None without one, or if those that may be run do not reach it."""
        return self.at.n_items if self.at is not None and self.reached else None

    @property
    def half_width(self) -> float | None:
        """What the interval of `at` is expected to be."""
        return None if self.at is None else self.at.half_width

    @property
    def detectable_difference(self) -> float | None:
        """What difference `at` is expected to show."""
        return None if self.at is None else self.at.detectable_difference

    @property
    def notes(self) -> tuple[Note, ...]:
        """The answer."""
        answer = [Note("answer", self.message)] if self.message else []
        return (*answer, *(Note("trials", text) for text in [self.trials_in_words] if text))

    @property
    def trials_in_words(self) -> str:
        """Say of how many trials widths and costs are, where past models tried items repeatedly."""
        if self.n_trials == 1:
            return ""
        how = remedy("plan_trials(bank, ...)", "--trials")
        return (
            f"Widths and costs are of {self.n_trials} trials an item, as past models had; of fewer, intervals are "
            f"wider. How many are worth their cost: {how}."
        )

    def near(self, n_items: int) -> Precision:
        """Precision of the number of items of the table nearest to one, fewer than all if there are such."""
        few = [one for one in self.table if one.n_items < self.n_total] or self.table
        return min(few, key=lambda one: abs(one.n_items - n_items))

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of items of the table."""
        measures = ("n_items", "half_width", "detectable_difference")
        return [{name: getattr(one, name) for name in measures} | one.costs for one in self.table]

    def to_polars(self) -> pl.DataFrame:
        """Return the records as a polars table."""
        return pl.DataFrame(self.rows())


@says_instead(**OF_LEVEL, **dict.fromkeys(("margin", "precision", "error"), "half_width"), n="max_items")
def plan(
    bank: GivenBank,
    *,
    half_width: float | None = None,
    difference: float | None = None,
    target: str = OVERALL,
    level: float = 0.95,
    power: float = 0.8,
    estimand: Estimand = RUN,
    max_items: int | None = None,
) -> Plan:
    """Say how many drawn items a question needs, from the bank alone and by a formula.

    An interval from drawn items holds for any model, by the draw. How wide it will be follows from the probabilities of
    the draw and from how far the bank expects answers of models like past ones to be from its predictions
    (`Prospect.at`).

    Parameters
    ----------
    bank : Bank or path
        With any number of past models, also without any.
    half_width : float, optional
        Wanted half-width of the interval of a model's score, in (0, 1).
    difference : float, optional
        Or: true difference of two models, run on the same items, that is to show with probability `power`. Without
        either goal only the table is made.
    target : str
        'overall' or a scenario. Numbers of items are of all scenarios together in any case. The interval of a scenario
        is mostly narrower, of models like past ones: it rests on the other scenarios' answers, too, which the formula
        leaves out.
    level, power : float
        Of the intervals, and with which a difference is to show as significant.
    estimand : {'run', 'repeated'}
        Which score is meant, see `estimate`. The typical chance of a run is part of every precision.
    max_items : int, optional
        The most that may be run.

    Raises
    ------
    ParameterError
        For two goals, a goal outside (0, 1), or another target.
    DataError
        When the bank was published with few of its items, or for repeated runs if it does not know how answers vary.

    Examples
    --------
    >>> plan(bank, half_width=0.02).n_items  # doctest: +SKIP
    >>> plan(bank, difference=0.03, power=0.9).message  # doctest: +SKIP
    """
    bank = as_bank(bank)
    if half_width is not None and difference is not None:
        raise ParameterError("a plan has one goal: give half_width or difference, not both.")
    goal = "half_width" if half_width is not None else "difference" if difference is not None else None
    value = difference if half_width is None else half_width
    if goal is not None:
        check_fraction(goal, value, is_score=True)
    check_fraction("level", level)
    check_fraction("power", power)
    check_estimand(estimand, Estimand)
    target = bank.targets.last if target == OVERALL else target
    prospect, n_trials = prospect_of(bank, target, level, power, estimand), usual_trials(bank.responses)
    prospect = replace(prospect, costs={unit: n_trials * cost for unit, cost in prospect.costs.items()})
    n_total = prospect.n_most
    if max_items is not None:
        check_whole("max_items", max_items, least=FEWEST)
    most = n_total if max_items is None else min(max_items, n_total)
    sizes, at, reached, message = {most, *(n for n in table_sizes(n_total) if n < most)}, None, None, ""
    if goal is not None and value is not None:
        n_items = fewest(prospect, lambda one: getattr(one, GOALS[goal]) <= value)
        reached = n_items is not None and n_items <= most
        at = prospect.at(n_items if n_items is not None and reached else most)
        sizes.add(at.n_items)
        what = "a half-width of" if goal == "half_width" else "telling apart models that differ by"
        words = f"{what} {value:g} ({100.0 * value:g} points) on {target!r}"
        message = _message(prospect, at, n_items, words, GOALS[goal])
    return Plan(
        target=target,
        goal=goal,
        goal_value=value,
        reached=reached,
        at=at,
        table=tuple(prospect.at(n) for n in sorted(sizes)),
        message=message,
        level=level,
        power=power,
        estimand=estimand,
        n_total=n_total,
        bank_id=bank.bank_id,
        n_trials=n_trials,
    )


def overall_plan(bank: Bank) -> Plan | None:
    """Return the table of the overall score; None of a bank that is asked for another, or has few items or of them."""
    has_table = bank.headline is None and bank.rest is None and len(table_sizes(bank.n_total)) > 1
    return plan(bank) if has_table else None


def table_sizes(n_total: int) -> list[int]:
    """Numbers of items of a table: 10, 20, 30, 50, 100, 200, ... and all."""
    sizes = (SMALLEST_SIZE * 10**power * step for power in range(len(str(n_total))) for step in STEPS)
    return [*(size for size in sizes if size * LEAST_STEP <= n_total), n_total]


def prospect_of(bank: Bank, target: str, level: float, power: float, estimand: Estimand = RUN) -> Prospect:
    """Take what a plan for a score needs, or say why there is none."""
    refuse_version(bank, target)
    if target in headline_names(bank):
        how = remedy(f"select(with_target(bank, {target!r}), n)", f"itembank select --target {shell_word(target)}")
        raise ParameterError(
            f"no draw gives the score {target!r} an interval, which past models' errors give: {how} says how wide it "
            "is. Or plan for 'overall' or a scenario."
        )
    if bank.rest is not None:
        raise DataError(
            "a plan needs all items of the score, and this bank was published with those of its own selections alone. "
            f"How wide their intervals are is in {remedy('show(bank)', 'itembank info')}."
        )
    weights, chance = bank.targets.target(target).weights, 0.0
    if estimand != RUN:
        bank.check_responses("A plan for repeated runs needs")
        variance = run_variance(bank, bank.responses, bank.calibration.abilities)
        chance = float(variance[:, bank.targets.names.index(target)].mean())
    return Prospect.of(bank, weights, chance=chance, level=level, power=power)


def fewest(prospect: Prospect, is_enough: Callable[[Precision], bool]) -> int | None:
    """Find by bisection the number of items that are enough, one less being too few; None if none is."""
    low, high = FEWEST - 1, prospect.n_most
    if not is_enough(prospect.at(high)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(prospect.at(middle)):
            high = middle
        else:
            low = middle
    return high


def _message(prospect: Prospect, at: Precision, n_items: int | None, asked: str, measure: str) -> str:
    n_total, reached = prospect.n_most, getattr(at, measure)
    is_none = measure == "detectable_difference" and reached >= 1.0
    they = "show no difference" if is_none else f"reach {points_of(reached)} points"
    if n_items is None:
        least = points_of(getattr(prospect.at(n_total), measure))
        return (
            f"No number of items is enough for {asked}: with all {n_total} items it is {least} points, by the "
            "chance of the run alone."
        )
    if n_items > at.n_items:
        enough = "Only all" if n_items == n_total else f"{n_items} of"
        be = "are" if n_items == n_total else "would be"
        return f"{at.n_items} items are too few for {asked}: they {they}. {enough} {n_total} items {be} enough."
    if n_items == n_total:
        return f"Only all {n_total} items are enough for {asked}."
    return f"{n_items} of {n_total} items are enough for {asked}: they {they}."
