"""How good estimates from a few items are, measured on calibration models that nothing had seen."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_cache import cache_name
from itembank.bank.banks import Bank
from itembank.checks import check_fraction
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import half_widths_out_of_fold
from itembank.numerics.threads import one_blas_thread
from itembank.planning.goals import Goal
from itembank.planning.plan import LIMITS_OF_AUTO, check_folds, fewest_items, most_items, plan_sizes
from itembank.planning.plan_spec import PlanSpec
from itembank.planning.precision import ALWAYS_TRIED, PrecisionCurve
from itembank.planning.size_trials import Trial, costs_of, estimates_of_size
from itembank.planning.stages import AUTO
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import check_enough_models

COST = "cost of "
"""Begins the names of kept costs; the unit follows."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors and intervals of every calibration model, estimated from n items by what had not seen it.

    Attributes
    ----------
    sizes : (n_sizes,)
        Numbers of items, of all scenarios together.
    errors : (n_sizes, n_models, n_targets)
        Estimate less full score; NaN where the score is not known. Targets are `ScoreTargets.names`.
    half_widths : (n_sizes, n_models, n_targets)
        Of each model's interval, which rests on the errors of the other folds' models alone.
    curve : PrecisionCurve
        Expected half-width of the overall score's interval at every number of items, as `plan` has it.
    differences : (n_sizes,)
        Smallest true difference of two models' overall scores that shows as significant, as `plan` has it.
    costs : mapping of unit to (n_sizes,)
        Expected cost of the chosen items, where the bank knows it.
    level : float
        Of the intervals.
    n_total : int
        Items of the bank.
    """

    sizes: IntArray
    errors: FloatArray
    half_widths: FloatArray
    curve: PrecisionCurve
    differences: FloatArray
    costs: dict[str, FloatArray]
    level: float
    n_total: int

    @property
    def mean_absolute_errors(self) -> FloatArray:
        """Mean over models, (n_sizes, n_targets); NaN where no error is known."""
        return _mean_of_models(np.abs(self.errors))

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the mean absolute errors, (n_sizes, n_targets), as if models were independent."""
        spread = np.abs(self.errors) - self.mean_absolute_errors[:, None, :]
        n_known = (~np.isnan(self.errors)).sum(axis=1)
        result: FloatArray = np.sqrt(_mean_of_models(spread**2) / np.maximum(n_known - 1, 1))
        return result

    @property
    def coverage(self) -> FloatArray:
        """Share of models whose full score lies in their interval, (n_sizes, n_targets)."""
        is_known = ~(np.isnan(self.errors) | np.isnan(self.half_widths))
        return _mean_of_models(np.where(is_known, np.abs(self.errors) <= self.half_widths, np.nan))

    @property
    def mean_half_widths(self) -> FloatArray:
        """Mean over models, (n_sizes, n_targets)."""
        return _mean_of_models(self.half_widths)

    @property
    def expected_half_widths(self) -> FloatArray:
        """What `plan` expects of these numbers of items, for the overall score, (n_sizes,)."""
        return self.curve.at(self.sizes)


def accuracy(bank: GivenBank, *, level: float = 0.95, progress: ProgressCallback = silent) -> Accuracy:
    """Measure how good estimates from 10 to 500 items are; the result is kept in the bank's cache.

    Each part of the calibration models in turn plays the new models: items are chosen, estimates made and intervals
    drawn without them, in the way that `select` and `estimate` take by themselves.

    Raises
    ------
    DataError
        With fewer than ten calibration models whose full scores are known.

    Examples
    --------
    >>> accuracy(bank).coverage[:, -1]  # doctest: +SKIP
    """
    check_fraction("level", level)
    bank = as_bank(bank)
    bank.check_responses("Measuring accuracy needs")
    arrays = bank.cache.arrays(
        _name(bank, level), lambda: _measured(bank, level, progress), fits=lambda one: _fits(one, bank)
    )
    return _accuracy(bank, arrays, level)


def kept_accuracy(bank: Bank, *, level: float = 0.95) -> Accuracy | None:
    """Return what `accuracy` measured before, None where it did not."""
    arrays = bank.cache.kept(_name(bank, level), fits=lambda one: _fits(one, bank))
    return None if arrays is None else _accuracy(bank, arrays, level)


def can_be_measured(bank: Bank) -> bool:
    """Return whether `accuracy` has enough past models to leave some out."""
    is_whole = bank.published is None and bank.calibration.is_fitted
    n_known = int(bank.known_scores.n_known[-1])
    return is_whole and min(bank.distinct_models.size, n_known) >= MINIMUM_FOR_FOLDS


def _name(bank: Bank, level: float) -> str:
    headline = () if bank.headline is None else (bank.headline.name, bank.headline.past)
    return cache_name("accuracy", "curve of select", level, *headline)


@one_blas_thread()
def _measured(bank: Bank, level: float, progress: ProgressCallback) -> dict[str, FloatArray]:
    check_folds(bank, part_of(progress, 0.0, 0.3))
    check_enough_models(
        int(bank.known_scores.n_known[-1]),
        MINIMUM_FOR_FOLDS,
        "measuring accuracy (models whose overall score is known)",
    )
    seed, spec = PlanSpec().seed, Stacked()
    sizes = plan_sizes(fewest_items(bank, LIMITS_OF_AUTO), most_items(bank, LIMITS_OF_AUTO), ALWAYS_TRIED).tolist()
    overall, trials = bank.targets.n_scenarios, []
    errors, half_widths = [], []
    for number, size in enumerate(sizes[::-1]):  # what was chosen for many items begins with what fewer get
        progress(f"trying {size} items", 0.3 + 0.7 * number / len(sizes))
        chosen, members = estimates_of_size(bank, size, selector=AUTO, spec=spec, seed=seed)
        found = members.past(spec).estimates
        errors.append(found.error)
        half_widths.append(half_widths_out_of_fold(found.error, found.scale, members.fold, level=level))
        trials.append(Trial.of(size, found, overall, costs_of(bank, chosen)))
    goal = Goal.of(bank, overall, PlanSpec(level), half_width=None, difference=None)
    trials.reverse()
    curve, differences = goal.curves(trials)
    progress("done", 1.0)
    by_unit = {f"{COST}{unit}": np.array([trial.costs[unit] for trial in trials]) for unit in trials[0].costs}
    return {
        "sizes": np.array(sizes, dtype=np.float64),
        "errors": np.stack(errors[::-1]),
        "half_widths": np.stack(half_widths[::-1]),
        "curve": curve.values,
        "differences": differences.at(np.array(sizes)),
        **by_unit,
    }


def _fits(arrays: dict[str, FloatArray], bank: Bank) -> bool:
    """Whether arrays from a file are of this bank's shape."""
    if not {"sizes", "errors", "half_widths", "curve", "differences"} <= set(arrays):
        return False
    shape = (arrays["sizes"].size, bank.n_models, bank.targets.n_scenarios + 1)
    return arrays["errors"].shape == shape == arrays["half_widths"].shape and arrays["curve"].size > 0


def _accuracy(bank: Bank, arrays: dict[str, FloatArray], level: float) -> Accuracy:
    costs = {name.removeprefix(COST): array for name, array in arrays.items() if name.startswith(COST)}
    return Accuracy(
        arrays["sizes"].astype(np.int64),
        arrays["errors"],
        arrays["half_widths"],
        PrecisionCurve(int(arrays["sizes"][0]), arrays["curve"]),
        arrays["differences"],
        costs,
        level,
        bank.n_items,
    )


def _mean_of_models(values: FloatArray) -> FloatArray:
    """Mean over models of (n_sizes, n_models, n_targets), without those not known."""
    is_known = ~np.isnan(values)
    n_known = is_known.sum(axis=1)
    total = np.where(is_known, values, 0.0).sum(axis=1)
    result: FloatArray = np.divide(total, n_known, out=np.full(total.shape, np.nan), where=n_known > 0)
    return result
