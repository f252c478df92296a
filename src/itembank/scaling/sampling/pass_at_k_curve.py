"""pass@k of one model on one scenario, by every method."""

from dataclasses import dataclass, replace

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.scaling.sampling.cell_posterior import CellPosterior, Counts, cell_posterior
from itembank.scaling.sampling.known_above import KnownAbove
from itembank.scaling.sampling.pass_at_k import plug_in_pass_at_k
from itembank.scaling.sampling.pass_at_k_specs import FEWEST_DRAWS, NEED_ITEM_MODEL, PassAtKSpec
from itembank.scaling.sampling.pass_curves import (
    Draws,
    PosteriorCurves,
    counted_curves,
    curves_above,
    posterior_curves,
    set_means,
    true_curves,
)
from itembank.scaling.sampling.sampled_scenarios import SampledScenario
from itembank.scaling.sampling.scenario_item_models import ScenarioItemModel, alike_items, plug_in_rates

N_SETS = 2
"""All items, and those whose pass rate is not too low."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One model on one scenario; the two sets of items are all of them and those that are kept."""

    row: int  # The model
    scenario: str
    columns: IntArray  # (n_curve_items,): Its items among all
    n_items: IntArray  # (n_sets,)
    values: FloatArray  # (n_methods, n_sets, n_k)
    low: FloatArray  # (n_sets, n_k)
    high: FloatArray  # (n_sets, n_k)
    truth: FloatArray  # (n_sets, n_k)
    failure: FloatArray  # (n_curve_items,): Posterior probability that all of the largest k samples fail
    ability: float
    ability_sd: float


@dataclass(frozen=True, slots=True)
class _ItemSets:
    """All items and the kept ones, (n_sets, n_items), and what is known of the latter beyond the samples used."""

    masks: BoolArray
    known: KnownAbove | None


def pass_at_k_curve(
    scenario: SampledScenario, row: int, k: FloatArray, spec: PassAtKSpec, rng: np.random.Generator
) -> Curve:
    """Find pass@k of the model at `row` on the items that it has samples of, or on all of the scenario."""
    columns = scenario.columns
    if not spec.include_unsampled:
        columns = columns[scenario.used.n_trials[row, columns] > 0]
    counts = Counts(scenario.used.n_trials[row, columns], scenario.used.n_correct[row, columns])
    all_counts = Counts(scenario.truth.n_trials[row, columns], scenario.truth.n_correct[row, columns])
    sets = _item_sets(counts, all_counts, spec)
    curve = Curve(
        row,
        scenario.name,
        columns,
        sets.masks.sum(axis=1),
        np.full((len(spec.methods), N_SETS, k.size), np.nan),
        np.full((N_SETS, k.size), np.nan),
        np.full((N_SETS, k.size), np.nan),
        true_curves(all_counts.n_trials, all_counts.n_correct, k, sets.masks),
        np.full(columns.size, np.nan),
        np.nan,
        np.nan,
    )
    for m, method in enumerate(spec.methods):
        if method == "beta-binomial":
            curve.values[m] = _alike_curves(counts, sets, k=k, spec=spec, rng=rng)
        elif method not in NEED_ITEM_MODEL:
            curve.values[m] = counted_curves(method, counts.n_trials, counts.n_correct, k, sets.masks)
    if scenario.item_model is None:
        return curve
    return _with_item_model(curve, scenario.item_model, counts, sets, k=k, spec=spec, rng=rng)


def _alike_curves(
    counts: Counts, sets: _ItemSets, *, k: FloatArray, spec: PassAtKSpec, rng: np.random.Generator
) -> FloatArray:
    """Pass rates as a sample of one Beta, (n_sets, n_k); none for items without samples."""
    values = np.full((N_SETS, k.size), np.nan)
    if np.all(counts.n_trials > 0):
        alike = alike_items(counts.n_trials.size)
        # one slope and one difficulty for all: the "ability" is the logit of the mean pass rate
        posterior = cell_posterior(alike.parameters, alike.prior, alike.precision, counts, rng=rng)
        few = replace(spec, n_draws=FEWEST_DRAWS)  # means need none
        for which, curve in enumerate(_set_curves(posterior, sets, k=k, spec=few, rng=rng)):
            values[which] = curve.mean
    return values


def _set_curves(
    posterior: CellPosterior, sets: _ItemSets, *, k: FloatArray, spec: PassAtKSpec, rng: np.random.Generator
) -> list[PosteriorCurves]:
    """Curves over all items, and over the kept ones where there are any."""
    draws = Draws(spec.level, spec.n_draws)
    curves = [posterior_curves(posterior, k, draws, rng)]
    is_solvable = sets.masks[1]
    if is_solvable.all() and sets.known is None:
        curves.append(curves[0])
    elif is_solvable.any():
        part = replace(posterior, alpha=posterior.alpha[:, is_solvable], beta=posterior.beta[:, is_solvable])
        curves.append(
            posterior_curves(part, k, draws, rng)
            if sets.known is None
            else curves_above(part, sets.known, k, draws, rng)
        )
    return curves


def _with_item_model(
    curve: Curve,
    item_model: ScenarioItemModel,
    counts: Counts,
    sets: _ItemSets,
    *,
    k: FloatArray,
    spec: PassAtKSpec,
    rng: np.random.Generator,
) -> Curve:
    """Add what the item model says: plugged in, and integrated over the posterior of every pass rate."""
    parameters = item_model.parameters_of(curve.columns)
    posterior = cell_posterior(parameters, item_model.prior, item_model.precision, counts, rng=rng)
    theta = posterior.weights @ posterior.theta  # (n_dims,)
    plugged = set_means(plug_in_pass_at_k(plug_in_rates(parameters, theta)[:, None], k), sets.masks)
    curves = _set_curves(posterior, sets, k=k, spec=spec, rng=rng)
    values, low, high = curve.values.copy(), curve.low.copy(), curve.high.copy()
    for which, one in enumerate(curves):
        low[which], high[which] = one.low, one.high
        for m, method in enumerate(spec.methods):
            values[m, which] = {"irsl": one.mean, "irsl-plug-in": plugged[which]}.get(method, values[m, which])
    ability_sd = float(np.sqrt(posterior.weights @ (posterior.theta[:, 0] - theta[0]) ** 2))
    return replace(
        curve,
        values=values,
        low=low,
        high=high,
        failure=curves[0].failure,
        ability=float(theta[0]),
        ability_sd=ability_sd,
    )


def _item_sets(used: Counts, every: Counts, spec: PassAtKSpec) -> _ItemSets:
    """Find the kept items: those of at least the minimum pass rate in all samples, or without any."""
    with np.errstate(invalid="ignore", divide="ignore"):
        is_low = every.n_correct / every.n_trials < spec.minimum_pass_rate
    masks = np.stack([np.ones(is_low.size, dtype=bool), ~is_low])
    if spec.budget is None or spec.minimum_pass_rate == 0.0:
        return _ItemSets(masks, None)  # the posterior has seen all that tells who is kept
    needs_one = every.n_trials * spec.minimum_pass_rate <= 1.0
    unseen = np.where(used.n_correct > 0, 0, every.n_trials - used.n_trials)
    known = KnownAbove(spec.minimum_pass_rate, np.where(needs_one, unseen, np.nan))
    return _ItemSets(masks, known.take(np.flatnonzero(masks[1])))
