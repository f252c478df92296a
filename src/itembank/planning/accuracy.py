"""How good estimates from a few items are, measured on past models that nothing had seen, and with more models."""

from dataclasses import dataclass

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_cache import cache_name
from itembank.bank.bank_views import keep_half_width
from itembank.bank.banks import Bank
from itembank.checks import check_fraction, check_whole
from itembank.estimation.estimator_specs import Stacked
from itembank.estimation.folds import MINIMUM_FOR_FOLDS
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_reach
from itembank.numerics.parallel import one_blas_thread
from itembank.planning.auto import AUTO
from itembank.planning.goals import ALWAYS_TRIED, Goal, PrecisionCurve, Trial, costs_of, estimates_of_size
from itembank.planning.plan import LIMITS_OF_AUTO, USUAL_SIZE, check_folds, fewest_items, most_items, plan_sizes
from itembank.planning.plan_spec import PlanSpec
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import check_enough_models
from itembank.selection.random_items import expected_counts
from itembank.tabular import Compact

COST = "cost of "
"""Begins the names of kept costs; the unit follows."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors and intervals of every past model, estimated from n items by what had not seen it.

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

    Each group of past models is scored as if it were new: items are chosen, estimates made and intervals
    drawn without them, in the way that `select` and `estimate` take by themselves.

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
    found = _accuracy(bank, arrays, level)
    usual = min(USUAL_SIZE, bank.n_items // 2)
    n_items = int(found.sizes[np.argmin(np.abs(found.sizes - usual))])
    keep_half_width(bank, n_items, lambda: float(found.curve.at(np.array(n_items))))
    return found


def kept_accuracy(bank: Bank, *, level: float = 0.95) -> Accuracy | None:
    """Return what `accuracy` measured before, None where it did not."""
    arrays = bank.cache.kept(_name(bank, level), fits=lambda one: _fits(one, bank))
    return None if arrays is None else _accuracy(bank, arrays, level)


def can_be_measured(bank: Bank) -> bool:
    """Return whether `accuracy` has enough past models for cross-validation."""
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
        half_widths.append(found.half_widths_out_of_fold(members.fold, level=level))
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


USUAL_AGREEMENT = 0.4
"""Correlation of two models' answers to the items of a scenario where past models cannot tell.

It is 0.28 on BFCL, 0.37 on MMLU-Pro, 0.48 on SWE-bench and 0.39 to 0.68 on the scenarios of Open LLM Leaderboard v1.
"""
LARGEST_VARIANCE = 0.25
"""Of right and wrong answers: half of them right."""


@dataclass(frozen=True, slots=True, repr=False)
class MoreModels(Compact):
    """Expected half-widths of design-based intervals of the overall score, by the number of past models."""

    n_items: int  # That a new model answers, drawn at random
    level: float
    n_models: tuple[int, ...]  # (n_rows,): Past models that answered every item
    half_width: FloatArray  # (n_rows,): Of the overall score, from 0 to 1
    agreement: float  # Correlation of two models' answers to the items of a scenario
    is_measured: bool  # Whether `agreement` is that of past models: two at least have common items

    def rows(self) -> list[dict[str, float]]:
        """One record for each number of past models."""
        return [
            {"n_models": n, "half_width": half} for n, half in zip(self.n_models, self.half_width.tolist(), strict=True)
        ]


def plan_models(
    bank: Bank,
    n_items: int,  # That a new model will answer, spread equally over scenarios
    *,
    more: tuple[int, ...] = (3, 10),  # Numbers of further models that run every item
    level: float = 0.95,  # Of the intervals
) -> MoreModels:
    """Forecast intervals of the overall score with the past models there are, and with more of them.

    The mean answer of k past models to an item explains ``R_k = rho^2 k / (1 + (k - 1) rho)`` of the variance of a new
    model's answers within a scenario, where rho is the correlation of two models' answers (Spearman-Brown: the mean of
    k answers has reliability ``k rho / (1 + (k - 1) rho)``). A difference estimate from n_s of N_s items drawn at
    random then has the variance ``sum_s w_s^2 (1 - n_s / N_s) v_s (1 - R_k) / n_s``, with w_s the scenario's weight and
    v_s the variance of answers within it.

    For the models there are, then with more.
    """
    check_whole("the number of items", n_items, least=1)
    check_fraction("level", level)
    agreement = between_models(bank)
    rho = USUAL_AGREEMENT if np.isnan(agreement) else float(np.clip(agreement, 0.0, 1.0))
    n_models = tuple(bank.n_models + extra for extra in (0, *more))
    counts = np.array(n_models, dtype=np.float64)
    explained = rho**2 * counts / (1.0 + (counts - 1.0) * rho)
    targets = bank.targets
    sizes = np.bincount(targets.scenario_index, weights=targets.weights > 0.0, minlength=targets.n_scenarios)
    n_asked = min(n_items, int(sizes.sum()))
    drawn = expected_counts(n_asked, np.ones(targets.n_scenarios), sizes.astype(np.int64))
    variance = np.where(np.isnan(bank.response_variance), LARGEST_VARIANCE, bank.response_variance)
    parts = targets.scenario_weights**2 * variance * (1.0 - drawn / sizes) / drawn
    freedom = max(n_asked - targets.n_scenarios, 1)
    of_sample = t_reach(level, float(freedom)) * float(np.sqrt(parts.sum()))  # at the usual variance of answers
    half = of_sample * np.sqrt(1.0 - explained)
    return MoreModels(n_items, level, n_models, half, rho, not np.isnan(agreement))


def between_models(bank: Bank) -> float:
    """Mean correlation of two models' answers to the items of a scenario; NaN where no two models tell.

    Covariances and variances are pooled over pairs of models and scenarios before they are divided.
    """
    responses, index = bank.responses.responses, bank.targets.scenario_index
    centred = np.zeros(responses.shape)
    observed = ~np.isnan(responses)
    for scenario in range(bank.targets.n_scenarios):
        items = np.flatnonzero(index == scenario)
        values, is_there = responses[:, items], observed[:, items]
        n = np.maximum(is_there.sum(axis=1, keepdims=True), 1)
        mean = np.where(is_there, values, 0.0).sum(axis=1, keepdims=True) / n
        centred[:, items] = np.where(is_there, values - mean, 0.0)
    common = observed.astype(np.float64) @ observed.T.astype(np.float64)
    products = centred @ centred.T
    pairs = ~np.eye(len(common), dtype=bool) & (common > 0.0)
    variances = np.diag(products).sum() / max(np.diag(common).sum(), 1.0)
    if not pairs.any() or variances == 0.0:
        return np.nan
    return float(products[pairs].sum() / common[pairs].sum() / variances)
