"""The verb `plan`: how many items a question needs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from itembank.calibration.folds import MINIMUM_FOR_FOLDS, folds
from itembank.checks import check_fraction
from itembank.data.arguments import GivenBank, as_bank
from itembank.data.banks import Bank
from itembank.data.targets import OVERALL
from itembank.errors import DataError, ParameterError, did_you_mean, shown
from itembank.estimation.specs import METHODS as ESTIMATORS
from itembank.estimation.specs import EstimationSpec
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.planning.auto import check_method, choose_selection
from itembank.planning.plans import Plan
from itembank.planning.precision import (
    SMALLEST_SIZE,
    PrecisionCurve,
    detectable_difference,
    expected_half_width,
    grid_sizes,
    precision_curve,
)
from itembank.planning.select import AUTO
from itembank.planning.trials import Trial, run_trial
from itembank.progress import ProgressCallback, silent
from itembank.selection.recipes import read_recipe
from itembank.selection.select import candidates
from itembank.selection.specs import METHODS as SELECTORS
from itembank.selection.specs import AnchorLatent, SelectionSpec, Stratified

N_CHECKS = 3
N_REACHED = 3
USUAL_SIZE = 100
N_ITEMS_TOLERANCE = 0.05
NO_ERROR = 1e-9


def plan(
    bank: GivenBank,
    *,
    half_width: float | None = None,
    difference: float | None = None,
    target: str = OVERALL,
    level: float = 0.95,
    power: float = 0.8,
    selector: SelectionSpec | str = "auto",
    method: EstimationSpec | str = "auto",
    max_items: int | None = None,
    seed: int = 0,
    progress: ProgressCallback = silent,
) -> Plan:
    """Say how many items a question needs, from the bank alone.

    Each part of the calibration models in turn plays the new models: items are chosen and estimates fitted without
    them, for numbers of items that grow by half. The errors give the expected half-width of an interval and the
    smallest detectable difference at each number, a smooth falling curve the number that is asked for, and the
    answer is tried itself.

    Parameters
    ----------
    bank : Bank or path
    half_width : float, optional
        Wanted half-width of the interval of a model's score, in (0, 1).
    difference : float, optional
        Or: true difference of two models, run on the same items, that is to show with probability `power`. Without
        either goal only the table is made.
    target : str
        'overall' or a scenario. Numbers of items are of all scenarios together in either case.
    level, power : float
    selector : spec or str
        How items will be chosen, as for `select`; 'auto' is decided once, at about 100 items.
    method : spec or str
        How scores will be estimated, as for `estimate`.
    max_items : int, optional
        Try no more than these.
    seed : int
    progress : ProgressCallback

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        For two goals, a goal, level or power outside (0, 1), or another target, selector or method.
    DataError
        With fewer than ten calibration models.

    Examples
    --------
    >>> plan(bank, half_width=0.02).n_items  # doctest: +SKIP
    >>> plan(bank, difference=0.03, power=0.9).message  # doctest: +SKIP
    """
    bank = as_bank(bank)
    _check(half_width, difference, level, power)
    if target not in bank.targets.names:
        near = did_you_mean(target, bank.targets.names)
        raise ParameterError(f"target must be one of {shown(bank.targets.names, limit=20)}, got {target!r}.{near}")
    estimator = ESTIMATORS.resolve(method)
    if selector != AUTO:
        check_method(selector)
    _check_folds(bank, progress)
    chooser = _chooser(bank, selector, max_items, seed)
    smallest, largest = _range(bank, chooser, max_items)
    index = bank.targets.names.index(target)

    def run(n_items: int) -> Trial:
        progress(f"trying {n_items} items", min(n_items / largest, 1.0))
        return run_trial(bank, n_items, selector=chooser, estimator=estimator, target=index, seed=seed)

    goal = Goal(half_width, difference, level, power, bank.n_items)
    trials = _grid(run, grid_sizes(smallest, largest), goal)
    n_items, trials = _search(run, trials, goal, largest)
    progress("done", 1.0)
    sizes = np.array([one.n_items for one in trials])
    half_widths, differences = goal.curves(trials)
    is_reached = n_items is not None and (max_items is None or n_items <= max_items)
    nearest = _nearest(trials, n_items) if is_reached else None
    at = np.array([largest if n_items is None or not is_reached else n_items])
    return Plan(
        target=target,
        goal=goal.name,
        goal_value=goal.value,
        n_items=n_items if is_reached else None,
        half_width=float(half_widths.at(at)[0]) if goal.name else None,
        detectable_difference=float(differences.at(at)[0]) if goal.name else None,
        measured=None if nearest is None else goal.measure(nearest),
        message=_message(goal, n_items, trials, largest=largest, max_items=max_items, target=target),
        sizes=sizes,
        half_widths=half_widths.at(sizes),
        detectable_differences=differences.at(sizes),
        mean_absolute_errors=np.array([float(np.mean(np.abs(one.errors))) for one in trials]),
        costs={unit: np.array([one.costs[unit] for one in trials]) for unit in trials[0].costs},
        level=level,
        power=power,
        selector=SELECTORS.label(chooser),
        method=ESTIMATORS.name_of(estimator),
        n_total=bank.n_items,
        bank_id=bank.bank_id,
    )


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be reached, and how trials are judged."""

    half_width: float | None
    difference: float | None
    level: float
    power: float
    n_total: int

    @property
    def name(self) -> str | None:
        """Which measure the goal is on."""
        return "half_width" if self.half_width is not None else "difference" if self.difference is not None else None

    @property
    def value(self) -> float | None:
        """Value to reach."""
        return self.half_width if self.half_width is not None else self.difference

    def curves(self, trials: list[Trial]) -> tuple[PrecisionCurve, PrecisionCurve]:
        """Draw half-width and detectable difference against the number of items."""
        sizes = np.array([one.n_items for one in trials])
        single = _smoothed([self._half_width(one) for one in trials], [one.errors for one in trials])
        centred = [one.errors - one.errors.mean() for one in trials]
        pairs = _smoothed([self._difference(one) for one in trials], centred)
        return precision_curve(sizes, single, self.n_total), precision_curve(sizes, pairs, self.n_total)

    def curve(self, trials: list[Trial]) -> PrecisionCurve:
        """Draw the curve the goal is on."""
        return self.curves(trials)[0 if self.half_width is not None else 1]

    def measure(self, trial: Trial) -> float:
        """Take what the goal is on from one trial alone."""
        return self._half_width(trial) if self.half_width is not None else self._difference(trial)

    def _half_width(self, trial: Trial) -> float:
        return expected_half_width(trial.errors, level=self.level)

    def _difference(self, trial: Trial) -> float:
        return detectable_difference(trial.errors, level=self.level, power=self.power)


def _smoothed(values: list[float], errors: list[FloatArray]) -> FloatArray:
    """Root mean square errors times the mean ratio of the values to them, (n_sizes,): quantiles alone are rough."""
    spread = np.array([np.sqrt(np.mean(one**2)) for one in errors])
    has_error = spread > NO_ERROR
    ratio = np.mean(np.array(values)[has_error] / spread[has_error]) if has_error.any() else 0.0
    result: FloatArray = np.where(has_error, ratio * spread, 0.0)
    return result


def _grid(run: Callable[[int], Trial], sizes: IntArray, goal: Goal) -> list[Trial]:
    """Try growing numbers of items, with a goal only until it has been reached three times."""
    trials: list[Trial] = []
    n_reached = 0
    for size in sizes.tolist():
        trials.append(run(size))
        n_reached += goal.value is not None and goal.measure(trials[-1]) <= goal.value
        if n_reached == N_REACHED:
            break
    return trials


def _search(
    run: Callable[[int], Trial], trials: list[Trial], goal: Goal, largest: int
) -> tuple[int | None, list[Trial]]:
    """Read the answer off the curve, try it, and read again from the curve that goes through it."""
    if goal.value is None:
        return None, trials
    for _ in range(N_CHECKS):
        n_items = goal.curve(trials).fewest(goal.value)
        if n_items > largest or n_items in {one.n_items for one in trials}:
            break
        trials = sorted([*trials, run(n_items)], key=lambda one: one.n_items)
    return goal.curve(trials).fewest(goal.value), trials


def _nearest(trials: list[Trial], n_items: int | None) -> Trial | None:
    """Trial with the number of items nearest to the answer; None when it is farther away than a twentieth."""
    if n_items is None:
        return None
    nearest = min(trials, key=lambda one: abs(one.n_items - n_items))
    return nearest if abs(nearest.n_items - n_items) <= N_ITEMS_TOLERANCE * n_items else None


def _message(
    goal: Goal, n_items: int | None, trials: list[Trial], *, largest: int, max_items: int | None, target: str
) -> str:
    """Put the answer in a sentence."""
    if goal.value is None or n_items is None:
        return ""
    what = "a half-width of" if goal.half_width is not None else "telling models apart that differ by"
    asked, of_all = f"{what} {goal.value:g} on {target!r}", f"of {goal.n_total} items"
    if max_items is not None and n_items > max_items:
        there = float(goal.curve(trials).at(np.array([max_items]))[0])
        return f"{max_items} items do not do for {asked}: they reach {there:.4f}. About {n_items} {of_all} would."
    if n_items >= goal.n_total:
        return f"Only all {goal.n_total} items do for {asked}."
    if n_items > largest:
        return f"About {n_items} {of_all} do for {asked}; no more than {largest} could be tried, so it is a guess."
    return f"{n_items} {of_all} do for {asked}."


def _check(half_width: float | None, difference: float | None, level: float, power: float) -> None:
    if half_width is not None and difference is not None:
        raise ParameterError("a plan has one goal: give half_width or difference, not both.")
    named = {"half_width": half_width, "difference": difference, "level": level, "power": power}
    for name, value in named.items():
        if value is not None:
            check_fraction(name, value)


def _check_folds(bank: Bank, progress: ProgressCallback) -> None:
    if not folds(bank, progress=progress):
        raise DataError(
            f"a plan needs at least {MINIMUM_FOR_FOLDS} calibration models that can be left out in turn, the bank "
            f"has {bank.n_models}. Add per-item results of more models."
        )


def _chooser(bank: Bank, selector: SelectionSpec | str, max_items: int | None, seed: int) -> SelectionSpec:
    """Spec of the selector; 'auto' becomes what it would take at a size that is usual."""
    if not (isinstance(selector, str) and selector == AUTO):
        return SELECTORS.resolve(selector)
    smallest, largest = _range(bank, AnchorLatent(), max_items)
    size = min(max(USUAL_SIZE, smallest), largest)
    recipe = read_recipe(choose_selection(bank, size, per_scenario=False, excluded=(), seed=seed))
    return Stratified("proportional") if recipe is None else recipe.spec


def _range(bank: Bank, selector: SelectionSpec, max_items: int | None) -> tuple[int, int]:
    """Fewest and most items to try: one for each scenario, and all that every fold can choose."""
    can_be_chosen = min(int(candidates(fold.bank, selector, ()).sum()) for fold in folds(bank))
    smallest = min(max(SMALLEST_SIZE, bank.targets.n_scenarios), can_be_chosen)
    if max_items is not None and max_items < smallest:
        raise ParameterError(f"max_items must be at least {smallest}, got {max_items}.")
    return smallest, can_be_chosen if max_items is None else min(max_items, can_be_chosen)
