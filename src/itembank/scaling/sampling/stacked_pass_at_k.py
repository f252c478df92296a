"""Weights between item response and one Beta for all items, from models whose pass@k is known.

Where other models say which items are hard, the method `irsl` errs less; where samples of an item nearly always agree,
or few models calibrate the items, `beta-binomial` is as good. Which holds is seen on calibration models: they are given
as few samples as the models asked about, and item models that have not seen them. The errors of both methods then give
weights as they do for estimates of scores (`itembank.estimation.stacking`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import shown
from itembank.estimation.folds import folds
from itembank.estimation.stacking import combined, stack_weights
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.scaling.sampling.interval_calibration import REACH, Parts, tried_curves
from itembank.scaling.sampling.pass_at_k_curve import N_SETS, Curve
from itembank.scaling.sampling.pass_at_k_specs import FEWEST_DRAWS, STACKED_OF, PassAtKSpec
from itembank.scaling.sampling.sample_counts import SampleCounts
from itembank.scaling.sampling.sampled_scenarios import SampledScenario
from itembank.scaling.sampling.scenario_item_models import item_model_of_bank

PRIOR_MODELS = 5.0
"""Models that the shrinkage of the weights is worth (`stack_weights`)."""

N_NEAR = 1
"""Neighbours on either side, among the k that are tried, whose errors count too. This and `PRIOR_MODELS` were chosen on
`bytelms-samples`; weights by k did better there than one weight for all k, and 5 better than 20."""


@dataclass(frozen=True, slots=True)
class StackedWeights:
    """Weights on the items of one scenario.

    Attributes
    ----------
    k : (n_tried_k,)
        Rising.
    of_irsl : (n_sets, n_tried_k)
        Weight of 'irsl', from 0 to 1; 'beta-binomial' has the rest.
    n_models : int
        Models they rest on.
    """

    k: FloatArray
    of_irsl: FloatArray
    n_models: int

    def at(self, k: FloatArray) -> FloatArray:
        """Weights of `STACKED_OF` at other k, (2, n_sets, n_k): straight lines in log k, level beyond."""
        of_irsl = np.array([np.interp(np.log(k), np.log(self.k), weights) for weights in self.of_irsl])
        return np.stack([of_irsl, 1.0 - of_irsl])


NO_WEIGHTS = StackedWeights(np.ones(1), np.full((N_SETS, 1), 0.5), 0)
"""A half each, where nothing tells."""


def computed_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """Return the methods that curves are computed by: those asked for, with both that are weighed."""
    plain = [name for name in methods if name != "stacked"]
    return tuple(dict.fromkeys([*plain, *STACKED_OF])) if "stacked" in methods else tuple(plain)


def stacked_weights(
    scenario: SampledScenario,
    known: SampleCounts,
    rows: IntArray,
    *,
    given: int,
    spec: PassAtKSpec,
    rng: np.random.Generator,
    parts: Parts | None,
    reach: int = REACH,
) -> StackedWeights | None:
    """Find the weights by what both methods make of few samples of some models; None when too few models can tell.

    Parameters
    ----------
    scenario, known, rows, parts, reach
        As for `tried_curves`.
    given : int
        Samples of an item that the models are given.
    spec : PassAtKSpec
    rng : Generator
    """
    plain = replace(spec, methods=STACKED_OF, budget=given, include_unsampled=False, n_draws=FEWEST_DRAWS)
    found = tried_curves(scenario, known, rows, spec=plain, rng=rng, parts=parts, reach=reach)
    if found is None:
        return None
    k, curves = found
    return StackedWeights(k, np.stack([weights_of_set(curves, which) for which in range(N_SETS)]), len(curves))


def weights_of_set(curves: Sequence[Curve], which: int) -> FloatArray:
    """Weight of 'irsl' by the errors of curves of `STACKED_OF` on one set of items, (n_k,)."""
    errors = np.stack([(curve.values[:, which] - curve.truth[which]).T for curve in curves])  # (n_models, n_k, 2)
    weights = np.empty(errors.shape[1])
    for j in range(weights.size):
        near = errors[:, max(j - N_NEAR, 0) : j + N_NEAR + 1]
        # errors of one model at neighbouring k are much the same: all of them together count as one model
        weights[j] = stack_weights(near.reshape(-1, 2), prior_models=PRIOR_MODELS * near.shape[1])[0]
    return weights


def parts_of_folds(
    scenario: SampledScenario, tried: IntArray, bank: Bank
) -> Iterator[tuple[SampledScenario, IntArray]]:
    """Divide the models of a bank as its folds do, each part with the items of the bank that has not seen it."""
    for fold in folds(bank):
        item_model = item_model_of_bank(fold.bank, scenario.columns)
        yield replace(scenario, item_model=item_model), np.intersect1d(tried, fold.held_out)


def with_stacked(
    curve: Curve, k: FloatArray, computed: Sequence[str], methods: Sequence[str], weights: StackedWeights
) -> Curve:
    """Return the curve with the values of `methods`, of which 'stacked' weighs two that were `computed`.

    Where one of the two has no value the other stands alone. Intervals are those of 'irsl', NaN where it was not asked
    for.
    """
    values = np.stack([curve.values[computed.index(name)] for name in STACKED_OF])  # (2, n_sets, n_k)
    flat = combined(values.reshape(2, 1, -1), weights.at(k).reshape(2, -1))
    by_name = dict(zip(computed, curve.values, strict=True)) | {"stacked": flat.reshape(values.shape[1:])}
    found = replace(curve, values=np.stack([by_name[name] for name in methods]))
    nothing = np.full(curve.low.shape, np.nan)
    return found if "irsl" in methods else replace(found, low=nothing, high=nothing)


def weight_note(weights: Mapping[str, StackedWeights]) -> str:
    """State what weight item response has, and what it rests on."""
    told = [
        f"{name!r} {one.of_irsl[0].min():.2f} to {one.of_irsl[0].max():.2f} ({one.n_models} models)"
        for name, one in weights.items()
        if one.n_models
    ]
    untold = [name for name, one in weights.items() if not one.n_models]
    parts = [f"'stacked' gives 'irsl' this weight, and 'beta-binomial' the rest: {', '.join(told)}"] if told else []
    if untold:
        parts.append(f"'stacked' is the mean of 'irsl' and 'beta-binomial' where too few models tell: {shown(untold)}")
    return ". ".join(parts)
