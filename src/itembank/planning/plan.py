"""The verb `plan` and its result: how many items a question needs."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import asked_for, headline_names
from itembank.bank.banks import Bank
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.estimation.estimate import check_headline
from itembank.estimation.estimator_specs import METHODS as ESTIMATORS
from itembank.estimation.estimator_specs import Auto, EstimationSpec
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, folds
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.planning.auto import (
    AUTO,
    check_method,
    choose_selection,
    compare_stages,
    first_of_stages,
    routing_method,
    stage_sizes,
)
from itembank.planning.goals import (
    ALWAYS_TRIED,
    Found,
    Goal,
    Selector,
    Trial,
    find_fewest,
    grid_sizes,
    try_grid,
    try_size,
)
from itembank.planning.plan_spec import PlanSpec
from itembank.progress import ProgressCallback, silent
from itembank.responses.score_names import OVERALL
from itembank.selection.select import candidates, select
from itembank.selection.selector_specs import METHODS as SELECTORS
from itembank.selection.selector_specs import SelectionSpec, VOptimal
from itembank.tabular import Note, Tabular

USUAL_SIZE = 100
LIMITS_OF_AUTO = VOptimal()
"""Of the methods of 'auto' the one with the fewest items to begin with, and none that all models answered alike."""
USUAL = PlanSpec()


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """How many items reach the goal.

    Attributes
    ----------
    n_items : int or None
        Fewest items that reach the goal, by the curve and by a trial of that many; None without a goal, or where those
        that may be run do not reach it.
    half_width, detectable_difference : float or None
        Expected at `n_items`; at the most items that may be run where the goal is not reached.
    measured : float or None
        What the goal is on as it came out in the trial of so many items; None where that many were not tried.
    reached : bool or None
        Whether the goal is; None without one.
    message : str
        The answer in a sentence.
    """

    n_items: int | None
    half_width: float | None
    detectable_difference: float | None
    measured: float | None
    reached: bool | None
    message: str

    @classmethod
    def of(cls, goal: Goal, grid: list[Trial], found: Found, *, most: int, max_items: int | None, target: str) -> Self:
        """Say what was found of a goal, with the curves through the grid; at most `most` items could be run."""
        if goal.name is None:
            return cls(None, None, None, None, None, "")
        n_items, is_possible = found.n_items, goal.least(grid) <= goal.value  # type: ignore[operator]
        if n_items is None and is_possible and goal.is_exact and (max_items is None or max_items >= goal.n_total):
            n_items = goal.n_total  # all items leave nothing to estimate, whatever a trial of fewer says
        at = most if n_items is None else n_items
        half_widths, differences = (float(curve.at(np.array(at))) for curve in goal.curves(grid))
        trial = found.trials.get(at)
        measured = None if trial is None else goal.measure(trial)
        message = _message(goal, grid, n_items, most=most, measured=measured, target=target)
        return cls(n_items, half_widths, differences, measured, n_items is not None, message)


@dataclass(frozen=True, slots=True)
class PlanTable:
    """Precision of n items, for the numbers of items that every plan tries, and for the answer.

    Attributes
    ----------
    sizes : (n_sizes,)
        Numbers of items.
    half_widths : (n_sizes,)
        Expected half-width of the interval of one model's score, like past ones.
    detectable_differences : (n_sizes,)
        Smallest true difference of two models that shows as significant with the power of the plan.
    mean_absolute_errors : (n_sizes,)
    costs : mapping of unit to (n_sizes,)
        Expected cost of running a model on the items, where the bank knows costs.
    """

    sizes: IntArray
    half_widths: FloatArray
    detectable_differences: FloatArray
    mean_absolute_errors: FloatArray
    costs: dict[str, FloatArray]

    @classmethod
    def of(cls, goal: Goal, grid: list[Trial], found: Found, *, most: int) -> Self:
        """Read the curves through the grid at its numbers of items, and at the answer; at most `most` could be run."""
        shown = {trial.n_items for trial in grid if trial.n_items <= most}
        if found.n_items is not None:
            shown.add(found.n_items)
        sizes = np.array(sorted(shown))
        trials = [found.trials[size] for size in sorted(shown)]
        half_widths, differences = goal.curves(grid)
        return cls(
            sizes,
            half_widths.at(sizes),
            differences.at(sizes),
            np.array([float(np.mean(np.abs(trial.found.error))) for trial in trials]),
            {unit: np.array([trial.costs[unit] for trial in trials]) for unit in trials[0].costs},
        )

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of items of the table."""
        return [
            {
                "n_items": int(size),
                "half_width": float(self.half_widths[k]),
                "detectable_difference": float(self.detectable_differences[k]),
                "mean_absolute_error": float(self.mean_absolute_errors[k]),
                **{name: float(cost[k]) for name, cost in self.costs.items()},
            }
            for k, size in enumerate(self.sizes)
        ]


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Tabular):
    """Precision of estimates of a new model from n items.

    Attributes
    ----------
    target : str
    goal : Goal
        What was asked for: its `name` is 'half_width', 'difference' or None, when only the table was; its `spec` holds
        level and power.
    answer : PlanAnswer
    table : PlanTable
    selector, method : str
    bank_id : str
    stages_advice : str
        Whether two stages of as many items would do better, and by how much; empty if that was not tried: with a
        selector or a method of one's own choice.
    """

    target: str
    goal: Goal
    answer: PlanAnswer
    table: PlanTable
    selector: str
    method: str
    bank_id: str
    stages_advice: str = ""

    @property
    def n_items(self) -> int | None:
        """Fewest items that reach the goal; None without one, or if those that may be run do not reach it."""
        return self.answer.n_items

    @property
    def message(self) -> str:
        """The answer in a sentence."""
        return self.answer.message

    @property
    def notes(self) -> tuple[Note, ...]:
        """The answer, and what is said of two stages."""
        return tuple(
            Note(kind, text) for kind, text in (("answer", self.message), ("stages", self.stages_advice)) if text
        )

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of items of the table."""
        return self.table.rows()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the table."""
        return {
            "target": self.target,
            "goal": self.goal.name,
            "goal_value": self.goal.value,
            "n_items": self.n_items,
            "half_width": self.answer.half_width,
            "detectable_difference": self.answer.detectable_difference,
            "measured": self.answer.measured,
            "reached": self.answer.reached,
            "message": self.message,
            "estimand": self.goal.spec.estimand,
            "level": self.goal.spec.level,
            "power": self.goal.spec.power,
            "selector": self.selector,
            "method": self.method,
            "n_total": self.goal.n_total,
            "bank": self.bank_id,
            **({"stages_advice": self.stages_advice} if self.stages_advice else {}),
        }


def _message(
    goal: Goal, grid: list[Trial], n_items: int | None, *, most: int, measured: float | None, target: str
) -> str:
    """Put the answer in a sentence."""
    what = "a half-width of" if goal.half_width is not None else "telling apart models that differ by"
    asked = f"{what} {goal.value:g} ({100.0 * goal.value:.2f} points) on {target!r}"  # type: ignore[operator]
    of_all = f"of {goal.n_total} items"
    least = goal.least(grid)
    if least > goal.value:  # type: ignore[operator]
        why = "by the chance of the run alone" if goal.is_exact else "for the items do not make that score"
        with_all = f"with all {goal.n_total} items it is {100.0 * least:.2f} points"
        return f"No number of items is enough for {asked}: {with_all}, {why}."
    if n_items == goal.n_total:
        return f"Only all {goal.n_total} items are enough for {asked}."
    if n_items is not None:
        return f"{n_items} {of_all} are enough for {asked}: a trial of that many gave {100.0 * measured:.2f} points."  # type: ignore[operator]
    curve = goal.curve(grid)
    there = float(curve.at(np.array(most)))
    too_few = f"{most} items are too few for {asked}: they reach {100.0 * max(there, measured or 0.0):.2f} points."
    about = curve.fewest(goal.value)  # type: ignore[arg-type]
    return f"{too_few} About {about} {of_all} would be needed, which no trial has checked." if about > most else too_few


def plan(
    bank: GivenBank,
    *,
    half_width: float | None = None,
    difference: float | None = None,
    target: str = OVERALL,
    selector: SelectionSpec | str = "auto",
    method: EstimationSpec | str = "auto",
    max_items: int | None = None,
    spec: PlanSpec = USUAL,
    progress: ProgressCallback = silent,
) -> Plan:
    """Say how many items a question needs, from the bank alone.

    Each group of past models is scored as if it were new: items are chosen and estimates fitted without
    it, for the same numbers of items whatever is asked: 10, 20, 30, 50, 100, and so on. The errors give the expected
    half-width of an interval and the smallest detectable difference at each number, and a falling curve through these
    the number that is asked for. That many are tried themselves, and more of them if the trial misses the goal.

    Parameters
    ----------
    bank : Bank or path
    half_width : float, optional
        Wanted half-width of the interval of a model's score, in (0, 1).
    difference : float, optional
        Or: true difference of two models, run on the same items, that is to show with probability `power`. Without
        either goal only the table is made.
    target : str
        'overall' or a scenario; 'mean_win_rate', or an external score that the bank keeps. Numbers of items are of all
        scenarios together in any case.
    selector : spec or str
        How items will be chosen, as for `select`.
    method : spec or str
        How scores will be estimated, as for `estimate`.
    max_items : int, optional
        The most that may be run.
    spec : PlanSpec
        Level, power, seed and which score is meant.
    progress : ProgressCallback

    Raises
    ------
    ParameterError
        For two goals, a goal outside (0, 1), or another target, selector or method.
    DataError
        With fewer than ten past models.

    Examples
    --------
    >>> plan(bank, half_width=0.02).n_items  # doctest: +SKIP
    >>> plan(bank, difference=0.03, spec=PlanSpec(power=0.9)).message  # doctest: +SKIP
    """
    bank = asked_for(as_bank(bank), target)
    bank.check_responses("A plan needs")
    if bank.headline is not None:
        check_headline(bank, "calibrated", spec.estimand, progress)
        target = bank.targets.last if target == OVERALL else target
    if target not in bank.targets.names:
        names = tuple(dict.fromkeys([*bank.targets.names, *headline_names(bank)]))
        near = did_you_mean(target, names)
        raise ParameterError(f"target must be one of {shown(names, limit=20)}, got {target!r}.{near}")
    index = bank.targets.names.index(target)
    goal = Goal.of(bank, index, spec, half_width=half_width, difference=difference)
    estimator = ESTIMATORS.resolve(method)
    if selector != AUTO:
        check_method(selector)
    chooser: Selector = AUTO if selector == AUTO else SELECTORS.resolve(selector)
    check_folds(bank, progress)
    limits = LIMITS_OF_AUTO if isinstance(chooser, str) else chooser
    largest = most_items(bank, limits)
    # 'auto' has methods that predict a scenario from the answers to others, which not every method does
    fewest = fewest_items(bank, limits) if isinstance(estimator, Auto) else bank.targets.n_scenarios
    sizes = plan_sizes(fewest, largest, max_items)

    tried: list[int] = []

    def run(n_items: int) -> Trial:
        progress(f"trying {n_items} items", min(len(tried) / len(sizes), 1.0))
        tried.append(n_items)
        return try_size(bank, n_items, selector=chooser, estimator=estimator, target=index, seed=spec.seed)

    grid = try_grid(run, sizes, goal)
    most = largest if max_items is None else min(max_items, largest)
    found = find_fewest(run, grid, goal, most)
    answer = PlanAnswer.of(goal, grid, found, most=most, max_items=max_items, target=target)
    advice = ""
    if chooser == AUTO and isinstance(estimator, Auto):
        progress("trying stages", 1.0)
        advice = _stages_advice(bank, min(answer.n_items or USUAL_SIZE, most), spec.seed)
    progress("done", 1.0)
    return Plan(
        target=target,
        goal=goal,
        answer=answer,
        table=PlanTable.of(goal, grid, found, most=most),
        selector=chooser if isinstance(chooser, str) else SELECTORS.label(chooser),
        method=ESTIMATORS.name_of(estimator),
        bank_id=bank.bank_id,
        stages_advice=advice,
    )


def _stages_advice(bank: Bank, n_items: int, seed: int) -> str:
    """Say whether two stages of as many items would do better; nothing where there are too few items for stages."""
    try:
        sizes = stage_sizes(bank, n_items, 2)
    except ParameterError:
        return ""
    batch = choose_selection(bank, n_items, per_scenario=False, excluded=(), seed=seed)
    routing = select(bank, sizes[0], method=routing_method(bank), rng=seed)
    compared = compare_stages(bank, batch, first_of_stages(routing, sizes))
    return "" if compared is None else compared.advice


def check_folds(bank: Bank, progress: ProgressCallback) -> None:
    """Refuse a bank with too few past models for cross-validation."""
    if not folds(bank, progress=progress):
        raise DataError(
            f"a plan needs at least {MINIMUM_FOR_FOLDS} past models for cross-validation, the bank has "
            f"{bank.distinct_models.size} whose full scores are known and that are no copies. Add per-item results of "
            "more models."
        )


def most_items(bank: Bank, selector: SelectionSpec) -> int:
    """Return how many items every fold can choose."""
    return min(int(candidates(fold.bank, selector, ()).sum()) for fold in folds(bank))


def fewest_items(bank: Bank, selector: SelectionSpec) -> int:
    """Return how few items the selector can choose."""
    return 1 if selector.may_skip_scenarios(is_short=True) else bank.targets.n_scenarios


def plan_sizes(fewest: int, largest: int, max_items: int | None) -> IntArray:
    """Numbers of items to try: the same for every goal, with `max_items` as far as the first that is no smaller."""
    sizes = grid_sizes(largest)
    if sizes[0] < fewest:
        sizes = np.append(fewest, sizes[sizes > fewest])
    if max_items is None:
        return sizes
    if max_items < sizes[0]:
        raise ParameterError(f"max_items must be at least {sizes[0]}, got {max_items}.")
    return sizes[: 1 + int(np.searchsorted(sizes, min(max(max_items, ALWAYS_TRIED), largest)))]
