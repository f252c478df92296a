"""The goal of a plan, the precision of n items as a falling curve, and the trials that find how many are enough."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import isotonic_regression

from itembank.bank.banks import Bank
from itembank.bank.costs import costs_of_items
from itembank.bank.selections import Selection
from itembank.checks import check_fraction
from itembank.comparison.pairs import fit_pair_errors, model_pairs
from itembank.errors import DataError, ParameterError
from itembank.estimation.calibrated_scores import OutOfFold
from itembank.estimation.estimands import run_variance
from itembank.estimation.estimator_specs import RUN, Auto, EstimationSpec, PointSpec, Stacked
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import sample_of, try_methods
from itembank.estimation.past_errors import MembersOutOfFold, members_out_of_fold
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import normal_quantile, normal_reach, t_quantile
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.auto import choose_selection
from itembank.planning.plan_spec import PlanSpec
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS, SelectionSpec

SMALLEST_SIZE = 10
STEPS = (1, 2, 3, 5)
"""Of the numbers of items that are tried, within each power of ten."""
ALWAYS_TRIED = 500
"""As far every plan goes, so that a curve is the same whatever is asked; trials of thousands take minutes."""
LEAST_STEP = 1.25
"""From the last of them to the largest number that can be chosen: a nearer one would say nothing of its own."""


@dataclass(frozen=True, slots=True)
class PrecisionCurve:
    """Some measure of precision at every number of items."""

    smallest_size: int
    values: FloatArray  # (n_sizes,): At `smallest_size` and every larger number up to all items; never rising

    def at(self, sizes: IntArray) -> FloatArray:
        """Values at these numbers of items."""
        return self.values[np.clip(sizes - self.smallest_size, 0, self.values.shape[0] - 1)]

    def fewest(self, goal: float) -> int:
        """Smallest number of items whose value is at most the goal."""
        return self.smallest_size + int(np.flatnonzero(self.values <= goal)[0])


def precision_curve(
    sizes: IntArray,  # (n_sizes,): Rising
    values: FloatArray,  # (n_sizes,)
    n_total: int,  # N
    *,
    # Whether all N items give the score. Else the curve is flat beyond the largest size, and N counts as endless.
    is_exact: bool = True,
) -> PrecisionCurve:
    """Draw a falling curve through values measured at some numbers of items.

    Where more items did worse than fewer, by chance, the values are pooled: isotonic regression (Barlow et al. 1972).
    A mean over n of N items without replacement errs in proportion to ``sqrt(1/n - 1/N)``; the logarithm of the value
    over that is linear in log n from one size to the next, and level before the first and beyond the last.

    Between two sizes measured it depends on no others, unless values had to be pooled.
    """
    every = np.arange(int(sizes[0]), n_total + 1)
    falling = isotonic_regression(values, increasing=False).x
    known = (falling > 0.0) & ((sizes < n_total) | (not is_exact))
    none_left = 1.0 / n_total if is_exact else 0.0
    if not known.any():
        return PrecisionCurve(int(sizes[0]), np.zeros(every.shape))
    excess = np.log(falling[known]) - 0.5 * np.log(1.0 / sizes[known] - none_left)
    shrinking = np.sqrt(1.0 / (every if is_exact else np.minimum(every, sizes[-1])) - none_left)
    drawn = np.exp(np.interp(np.log(every), np.log(sizes[known]), excess)) * shrinking
    # between two sizes of one value the finite-population factor is above its chord
    return PrecisionCurve(int(sizes[0]), np.minimum.accumulate(drawn))


def grid_sizes(largest: int) -> IntArray:
    """Return the numbers of items that are tried, whatever is asked: 10, 20, 30, 50, 100, 200, ... and the largest."""
    n_powers = len(str(largest))
    sizes = SMALLEST_SIZE * np.outer(10 ** np.arange(n_powers), STEPS).ravel()
    return np.append(sizes[sizes * LEAST_STEP <= largest], largest)


def detectable_difference(errors: FloatArray, *, level: float, power: float) -> float:
    """Find the true difference that shows as significant with this power between two models like the calibration ones.

    ``(q + c F^-1(power)) s`` of `fit_pair_errors`, with s the root mean squared difference of errors (n_models,).
    """
    first, second = model_pairs(errors.shape[0])
    model = fit_pair_errors(errors, np.zeros(first.shape[0]), first, second, level=level)
    reach = model.quantile + model.scale * t_quantile(power, model.degrees)
    return float(reach * np.sqrt(model.constant))


Selector = SelectionSpec | str
"""A method of selection, or 'auto'."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Results with one number of items."""

    n_items: int
    found: OutOfFold  # Of every past model whose truth is known, on one target
    costs: dict[str, float]  # Expected cost of the chosen items, where the bank knows it

    @classmethod
    def of(cls, n_items: int, found: OutOfFold, target: int, costs: dict[str, float]) -> Self:
        """Take one target of what was found."""
        known = ~np.isnan(found.error[:, target])
        if known.sum() < 2:
            raise DataError("a plan needs past models whose full score is known, got fewer than two.")
        return cls(n_items, found.on(target).take(known), costs)


@one_blas_thread()
def try_size(
    bank: Bank, n_items: int, *, selector: Selector, estimator: EstimationSpec, target: int, seed: int
) -> Trial:
    """Choose n items in every fold anew and estimate the models it left out; raises as `Trial.of`."""
    spec = Stacked() if isinstance(estimator, Auto) else estimator
    chosen, members = estimates_of_size(bank, n_items, selector=selector, spec=spec, seed=seed)
    return Trial.of(n_items, members.past(spec).estimates, target, costs_of(bank, chosen))


def estimates_of_size(
    bank: Bank, n_items: int, *, selector: Selector, spec: PointSpec | Stacked, seed: int
) -> tuple[list[Selection], MembersOutOfFold]:
    """Choose n items in every fold anew, and estimate the models it left out; return both.

    'auto' takes what `select` takes for as many items, and its trial is the one that `estimate` rests on.
    """
    if isinstance(selector, str):
        taken = choose_selection(bank, n_items, per_scenario=False, excluded=(), seed=seed)
        return [taken], try_methods(bank, sample_of(bank, taken), taken, spec.members)
    every = folds(bank)
    chosen = [
        select(fold.bank, n_items, method=selector, rng=np.random.default_rng([seed, n_items, fold.number]))
        for fold in every
    ]
    samples = {fold.number: sample_of(fold.bank, one) for fold, one in zip(every, chosen, strict=True)}
    how, first = ("plan", METHODS.to_plain(selector, "method"), seed), samples[every[0].number]
    return chosen, members_out_of_fold(bank, spec.members, lambda fold: samples[fold.number], first, *how)


def costs_of(bank: Bank, chosen: list[Selection]) -> dict[str, float]:
    """Return the expected cost of a selection by unit, the mean over folds, without units that no item has."""
    positions = [bank.responses.item_indices(selection.item_ids) for selection in chosen]
    expected = costs_of_items(bank.responses)
    return {unit: float(np.mean([cost[items].sum() for items in positions])) for unit, cost in expected.items()}


N_CHECKS = 3
"""Trials of the answer beyond those of the grid, at the most."""
N_REACHED = 2
"""Sizes of the grid at which a goal is reached before no larger ones than `ALWAYS_TRIED` are tried."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A precision to reach, and the measure of it in trials."""

    half_width: float | None  # The one that is to be reached; None both where only the table is asked for
    difference: float | None
    n_total: int  # Items of the bank
    spec: PlanSpec
    chance: float = 0.0  # Variance of the score of one run around the one that is meant, typically
    is_exact: bool = True  # Whether all items give the score, as they do not give an external one

    @classmethod
    def of(cls, bank: Bank, target: int, spec: PlanSpec, *, half_width: float | None, difference: float | None) -> Self:
        """Set a goal, or none, for one of the bank's targets."""
        is_headline = bank.headline is not None and target == bank.targets.n_scenarios
        is_exact = not is_headline or bank.headline.follows_answers  # type: ignore[union-attr]
        chance = 0.0
        if spec.estimand != RUN:  # the mean over the past models
            chance = float(run_variance(bank, bank.responses, bank.calibration.abilities)[:, target].mean())
        return cls(half_width, difference, bank.n_items, spec, chance, is_exact)

    def __post_init__(self) -> None:
        """Check that there is one goal at most."""
        if self.half_width is not None and self.difference is not None:
            raise ParameterError("a plan has one goal: give half_width or difference, not both.")
        if self.name is not None:
            check_fraction(self.name, self.value, is_score=True)

    @property
    def name(self) -> str | None:
        """Name of the measure that the goal sets."""
        return "half_width" if self.half_width is not None else "difference" if self.difference is not None else None

    @property
    def value(self) -> float | None:
        """Value to reach."""
        return self.half_width if self.half_width is not None else self.difference

    def curves(self, trials: list[Trial]) -> tuple[PrecisionCurve, PrecisionCurve]:
        """Draw half-width and detectable difference against the number of items."""
        return self._curve(trials, of_pairs=False), self._curve(trials, of_pairs=True)

    def curve(self, trials: list[Trial]) -> PrecisionCurve:
        """Draw the curve of the measure that the goal sets."""
        return self._curve(trials, of_pairs=self.half_width is None)

    def measure(self, trial: Trial) -> float:
        """Take the measure that the goal sets from one trial alone."""
        of_pairs = self.half_width is None
        return float(self._with_chance(np.array(self._measured(trial, of_pairs=of_pairs)), of_pairs=of_pairs))

    def least(self, trials: list[Trial]) -> float:
        """Return the measure with all items: 0 but for the chance of another run, or of an external score."""
        if not self.is_exact:
            return float(self.curve(trials).values.min())
        return float(self._with_chance(np.zeros(()), of_pairs=self.half_width is None))

    def _measured(self, trial: Trial, *, of_pairs: bool) -> float:
        level = self.spec.level
        if of_pairs:
            return detectable_difference(trial.found.error[:, 0], level=level, power=self.spec.power)
        return trial.found.typical_half_width(level=level)

    def _curve(self, trials: list[Trial], *, of_pairs: bool) -> PrecisionCurve:
        sizes = np.array([trial.n_items for trial in trials])
        values = np.array([self._measured(trial, of_pairs=of_pairs) for trial in trials])
        curve = precision_curve(sizes, values, self.n_total, is_exact=self.is_exact)
        return PrecisionCurve(curve.smallest_size, self._with_chance(curve.values, of_pairs=of_pairs))

    def _with_chance(self, measure: FloatArray, *, of_pairs: bool) -> FloatArray:
        """Widen a measure by the chance of the run, which no number of items takes away; runs are independent."""
        reach = normal_reach(self.spec.level)
        if of_pairs:
            return np.hypot(measure, (reach + normal_quantile(self.spec.power)) * math.sqrt(2.0 * self.chance))
        return np.hypot(measure, reach * math.sqrt(self.chance))


class Found(NamedTuple):
    """What trials say of a goal."""

    # Fewest items that reach it, by the curve and by a trial of that many; None without a goal, or where none do.
    n_items: int | None
    trials: dict[int, Trial]  # Those of the grid, and those that tried an answer


def try_grid(run: Callable[[int], Trial], sizes: IntArray, goal: Goal) -> list[Trial]:
    """Try the numbers of items that every plan tries, and, with a goal, growing ones until it is reached twice."""
    # the most first: what was chosen for many items begins with what fewer get
    trials = [run(size) for size in sizes[sizes <= ALWAYS_TRIED][::-1].tolist()][::-1]
    n_reached = sum(goal.value is not None and goal.measure(trial) <= goal.value for trial in trials)
    for size in sizes[sizes > ALWAYS_TRIED].tolist():
        if n_reached >= N_REACHED:
            break
        trials.append(run(size))
        n_reached += goal.value is not None and goal.measure(trials[-1]) <= goal.value
    return trials


def find_fewest(
    run: Callable[[int], Trial],  # Tries a number of items
    grid: list[Trial],
    goal: Goal,
    most: int,  # Items that may be run
) -> Found:
    """Read the answer off the curve through the grid, and try it; where the trial disagrees, take more items."""
    tried = {trial.n_items: trial for trial in grid}
    if goal.value is None or goal.least(grid) > goal.value:
        return Found(None, tried)
    curve, value = goal.curve(grid), goal.value

    def reaching() -> list[int]:
        """Sizes that reach the goal by the curve and by their trial."""
        enough = [size for size in tried if size <= most and float(curve.at(np.array(size))) <= value]
        return [size for size in enough if goal.measure(tried[size]) <= value]

    wanted = value
    for _ in range(N_CHECKS):
        n_items = curve.fewest(wanted)
        if n_items > most or any(size <= n_items for size in reaching()):
            break
        if n_items not in tried:
            tried[n_items] = run(n_items)
        # where the trial misses the goal, the curve has to fall by as much as it lacks
        wanted = min(value / goal.measure(tried[n_items]), 1.0) * float(curve.at(np.array(n_items)))
    return Found(min(reaching(), default=None), tried)
