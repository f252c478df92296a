"""The verb `homogeneity`: whether the items of a scenario differ enough, and tell enough, for a law (IRSL App. C)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenResponses, as_bank_or_responses
from itembank.bank.banks import Bank, Calibration
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.checks import check_fraction, check_whole
from itembank.errors import DataError
from itembank.irt.families import information_weights
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular
from itembank_scaling.scenario_fits import ItemSetFit, fit_scenarios, responses_and_spec

ENDS = ("", "_lower", "_upper")


@dataclass(frozen=True, slots=True, repr=False)
class Homogeneity(Tabular):
    """Result of `homogeneity`; abilities have mean 0 and standard deviation 1.

    Attributes
    ----------
    table : table of one row a scenario
        `scenario`, `n_items`, `n_models`; `n_degenerate` items that all models answered alike, which are in nothing
        but the `pattern`; `difficulty_sd` and `discrimination_sd`, each with an interval (`_lower`, `_upper`): half the
        distance from the 16th to the 84th percentile of the items, with the uncertainty of their parameters, which is
        the standard deviation of a normal distribution, and which single items with a slope near zero do not move;
        `mean_discrimination`; `n_negative` items of a negative one; `lowest_ability` and `highest_ability`, the 5th and
        95th percentile of the models; `standard_error_low`, `_middle` and `_high`: of an ability by all items, ``1 /
        sqrt(information)``, at the ends and in the middle of this range; `reliability`: fraction of the variance of
        ability that `budget` items of mean information explain, averaged over the range; `share_ordered`: fraction of
        pairs of models that they order rightly, ties aside; `items_for_90`: how many such items it takes for a
        reliability of 0.9; `warnings`: why a law may fail, empty where nothing speaks against it.
    figures : mapping of scenario to named arrays
        `difficulty` and `discrimination`, (n_items - n_degenerate,); `information` of all items together at the
        abilities of `grid`, (n_grid,); `pattern`, (n_rows, n_columns): responses averaged in blocks, models by rising
        mean response, items by rising difficulty.
    level : float
        Of the intervals.
    budget : int
        Items a law is to be made from.
    """

    table: pl.DataFrame
    figures: Mapping[str, Mapping[str, FloatArray]]
    level: float
    budget: int

    @property
    def scenarios(self) -> tuple[SimpleNamespace, ...]:
        """The rows of the table with the figures of their scenario, all of them attributes."""
        return tuple(SimpleNamespace(**row, **self.figures[row["scenario"]]) for row in self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return what holds for all scenarios."""
        warned = [one.scenario for one in self.scenarios if one.warnings]
        counts = {"n_scenarios": self.table.height, "n_warned": len(warned), "warned": warned}
        return {**counts, "budget": self.budget, "level": self.level}


@one_blas_thread()
def homogeneity(
    source: Bank | GivenResponses,
    *,
    spec: CalibrationSpec | None = None,
    budget: int = 50,
    level: float = 0.95,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Homogeneity:
    """Say how much the items of every scenario differ, and how sharply they measure the models there are.

    Every scenario is calibrated by itself.

    Parameters
    ----------
    source : Bank, ResponseMatrix, path or paths
        Of a bank, its calibration responses.
    spec : CalibrationSpec, optional
        An item model with one dimension. By default '2pl', with the family that the responses are of.
    budget : int
        Items that a law is to be made from; IRSL's rest on 50.
    level : float
        Of the intervals of the spreads.
    rng : Generator, int or None
        Draws of the intervals.
    progress : ProgressCallback

    Returns
    -------
    Homogeneity
        With warnings where the items of a scenario are too much alike, or measure too little.

    Raises
    ------
    DataError
        When no scenario can be fitted.
    ParameterError
        For an item model of more dimensions, a budget below 1, or a level outside (0, 1).

    Examples
    --------
    >>> found = homogeneity(load_builtin("classifiers"))  # doctest: +SKIP
    >>> found.rows()  # doctest: +SKIP
    """
    check_whole("budget", budget, least=1)
    check_fraction("level", level)
    source = as_bank_or_responses(source)
    if isinstance(source, Bank):
        source.check_responses("How much alike items are needs")
    responses, chosen = responses_and_spec(source, spec)
    fits = fit_scenarios(responses, chosen, progress=progress)
    if not fits:
        raise DataError("at least one scenario must have items that tell models apart, got none that can be fitted.")
    rng = as_generator(rng)
    rows, figures = zip(*(_scenario(fit, responses, budget=budget, level=level, rng=rng) for fit in fits), strict=True)
    by_name = dict(zip((fit.name for fit in fits), figures, strict=True))
    return Homogeneity(pl.DataFrame(rows), by_name, level, budget)


def spread(draws: FloatArray, level: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Find the spread over items, and the ends of its interval, from draws (n_draws, n_items) of what each item may be.

    Each draw takes the items anew, with replacement, so that the interval is of the kind of item, not only of these.
    """
    # each row of indices resamples the items of one posterior draw: the interval covers both uncertainties
    items = rng.integers(draws.shape[1], size=draws.shape)
    of_draws = half_range(draws)
    again = half_range(np.take_along_axis(draws, items, axis=1))
    lower, upper = np.quantile(again, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return float(np.median(of_draws)), float(lower), float(upper)


def half_range(values: FloatArray) -> FloatArray:
    """Half the distance between the percentiles that lie one standard deviation from a normal mean, by row."""
    # Phi(-1) and Phi(1). The ratio of two normal draws, as difficulty -c / a is, has no standard deviation.
    low, high = np.quantile(values, [0.15865525393145707, 0.8413447460685429], axis=-1)
    result: FloatArray = 0.5 * (high - low)
    return result


def parameter_draws(
    calibration: Calibration, items: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw difficulties and discriminations of items of one dimension from their posterior, each (n_draws, n_items)."""
    parameters = calibration.parameters
    covariance = calibration.item_covariance[items]
    slope_sd = np.sqrt(np.maximum(covariance[:, 0, 0], 0.0))
    # Cholesky factor of each 2 x 2 covariance: (slope_sd, 0; common, remaining)
    common = np.divide(covariance[:, 0, 1], slope_sd, out=np.zeros_like(slope_sd), where=slope_sd > 0.0)
    remaining = np.sqrt(np.maximum(covariance[:, 1, 1] - common**2, 0.0))
    n_draws = 400  # ends of a 95 % interval are then known to 0.13 of its standard deviation
    first, second = rng.standard_normal((2, n_draws, items.size))
    slope = parameters.loadings[items, 0] + slope_sd * first
    intercept = parameters.intercept[items] + common * first + remaining * second
    with np.errstate(divide="ignore", invalid="ignore"):
        # only an item without loading and without error of it: it belongs nowhere, and must not be infinite
        difficulty = np.where(slope == 0.0, 0.0, -intercept / slope)
    return difficulty, slope


def information_of(parameters: ItemParameters, theta: FloatArray, n_trials: FloatArray | None) -> FloatArray:
    """Information of all items together at abilities (n_theta,): (n_theta,); with n_trials (n_items,) samples each."""
    trials = None if n_trials is None else np.broadcast_to(n_trials, (theta.size, parameters.n_items))
    weights = information_weights(parameters, theta[:, None] @ parameters.loadings.T + parameters.intercept, trials)
    return weights @ parameters.loadings[:, 0] ** 2


def block_means(values: FloatArray, n_blocks: int) -> FloatArray:
    """Average a matrix with missing cells in at most n_blocks x n_blocks blocks; NaN where a block has none."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0), known.astype(np.float64)
    for axis in (0, 1):
        n = values.shape[axis]
        starts = np.unique(np.linspace(0, n, min(n, n_blocks), endpoint=False).astype(np.int64))
        total, count = np.add.reduceat(total, starts, axis=axis), np.add.reduceat(count, starts, axis=axis)
    result: FloatArray = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0.0)
    return result


def _scenario(
    fit: ItemSetFit, responses: ResponseMatrix, *, budget: int, level: float, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    calibration = fit.calibration
    used = np.flatnonzero(~calibration.is_degenerate)
    parameters = calibration.parameters.take(used)
    difficulty, slope = parameter_draws(calibration, used, rng)
    abilities = calibration.abilities[:, 0]
    # the range that IRSL marks beside the test information (App. C)
    low, high = (float(end) for end in np.percentile(abilities, (5.0, 95.0)))
    # at least where a standard normal has 99.7 % of its mass, and never less than the models there are
    reach = max(3.0, float(np.abs(abilities).max()))
    # points of the curves drawn, and of the mean reliability over the range; odd, so that one is the middle
    n_grid = 201
    grid = np.linspace(-reach, reach, n_grid)
    inside = np.linspace(low, high, n_grid)
    n_trials = None
    if responses.n_trials is not None:  # the median of those behind a response to each item
        columns = fit.columns[used]
        given = np.where(responses.observed[:, columns], responses.n_trials[:, columns], np.nan).astype(np.float64)
        n_trials = np.maximum(np.nanmedian(given, axis=0), 1.0)
    information = information_of(parameters, inside, n_trials)
    per_item = information / used.size
    # with the prior variance 1 and information I, 1 - Var(theta | y) / Var(theta) = I / (1 + I), at each ability
    reliability = float(np.mean(budget * per_item / (1.0 + budget * per_item)))
    spreads = {"difficulty_sd": spread(difficulty, level, rng), "discrimination_sd": spread(slope, level, rng)}
    mean = float(parameters.loadings[:, 0].mean())
    row = {
        "scenario": fit.name,
        "n_items": fit.columns.size,
        "n_models": abilities.size,
        "n_degenerate": int(calibration.is_degenerate.sum()),
        **{f"{name}{end}": one for name, ends in spreads.items() for end, one in zip(ENDS, ends, strict=True)},
        "mean_discrimination": mean,
        "n_negative": int((parameters.loadings[:, 0] < 0.0).sum()),
        "lowest_ability": low,
        "highest_ability": high,
        **{
            f"standard_error_{name}": float(1.0 / np.sqrt(information[place]))
            for name, place in (("low", 0), ("middle", n_grid // 2), ("high", n_grid - 1))
        },
        "reliability": reliability,
        "share_ordered": share_ordered(reliability),
        "items_for_90": items_for(0.9, per_item),
        "warnings": warnings_of(
            *(value for value, *_ in spreads.values()), mean_discrimination=mean, reliability=reliability, budget=budget
        ),
    }
    return row, {
        "difficulty": parameters.difficulty,
        "discrimination": parameters.loadings[:, 0],
        "grid": grid,
        "information": information_of(parameters, grid, n_trials),
        "pattern": _pattern(fit, responses),
    }


def items_for(reliability: float, information: FloatArray) -> float:
    """Return how many items, each with this information (n_abilities,), give a mean reliability I / (1 + I)."""
    from scipy.optimize import brentq  # noqa: PLC0415 (other papers' numbers need none)

    def above(n: float) -> float:
        return float(np.mean(n * information / (1.0 + n * information))) - reliability

    ends = reliability / (1.0 - reliability) / np.array([information.max(), information.min()])
    return float(brentq(above, *ends)) if ends[0] < ends[1] else float(ends[0])


def share_ordered(reliability: float) -> float:
    """Fraction of pairs of models whose abilities are ordered rightly: ``1/2 + asin(sqrt(reliability)) / pi``.

    Of a normal ability and its estimate, whose squared correlation is the reliability (Sheppard 1899).
    """
    return float(0.5 + np.arcsin(np.sqrt(reliability)) / np.pi)


def warnings_of(
    difficulty: float,  # Spreads over items
    discrimination: float,
    *,
    mean_discrimination: float,
    reliability: float,
    budget: int,
) -> list[str]:
    """Return the reasons why a law may fail on a scenario."""
    warnings = []
    relative = discrimination / mean_discrimination if mean_discrimination > 0.0 else np.inf
    # in standard deviations of ability. IRSL reports 0.19 and 0.29 where laws fail, 0.55 where they work
    narrow_difficulty = 0.5
    # as a share of the mean discrimination. IRSL's spreads are 0.14 and 0.30 where laws fail, 0.61 where they work
    narrow_discrimination = 0.4
    if difficulty < narrow_difficulty and relative < narrow_discrimination:
        warnings.append(
            f"items are alike (spread of difficulty {difficulty:.2f}, below {narrow_difficulty:g}; of "
            f"discrimination {relative:.2f} of its mean, below {narrow_discrimination:g}): an item model says little "
            "that the mean does not"
        )
    least_reliability = 0.8  # at this 85 % of all pairs of models are ordered rightly (`share_ordered`)
    if reliability < least_reliability:
        warnings.append(
            f"{budget} items measure ability poorly (reliability {reliability:.2f}, below {least_reliability:g}): they "
            f"order {100.0 * share_ordered(reliability):.0f} % of pairs of models correctly"
        )
    return warnings


def _pattern(fit: ItemSetFit, responses: ResponseMatrix) -> FloatArray:
    """Responses by rising mean of the models and rising difficulty of the items, in blocks."""
    values = responses.responses[np.ix_(np.flatnonzero(~np.isnan(fit.theta)), fit.columns)]
    known = ~np.isnan(values)
    mean = np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    difficulty = np.nan_to_num(fit.calibration.parameters.difficulty, nan=np.inf)
    ordered = values[np.argsort(mean, kind="stable")][:, np.argsort(difficulty, kind="stable")]
    return block_means(ordered, 300)
