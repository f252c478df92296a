"""The verb `sampling_plan`: how many samples, of which items, to buy next for a wanted precision of pass@k."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from itembank.bank.banks import Bank
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.checks import check_fraction, check_whole
from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import normal_reach
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pass_at_k.cell_posterior import CellPosterior, Counts, cell_posterior
from itembank.scaling.pass_at_k.kernels import best_purchases, expected_variances, log_beta_failure
from itembank.scaling.pass_at_k.results import SamplingPlan, ScenarioPlan
from itembank.scaling.pass_at_k.samples import SampledScenario, sample_counts, sampled_items, sampled_scenarios
from itembank.scaling.pass_at_k.specs import default_item_model

_N_DRAWS = 8
"""Draws of ability and precision that stand for the posterior: items' own uncertainty is far larger."""


@dataclass(frozen=True, slots=True)
class SamplingPlanSpec:
    """How precise pass@k shall become.

    Attributes
    ----------
    k : int
    half_width : float
        Wanted, of the interval of pass@k.
    level : float
    most : int
        Further samples of one item at most.
    item_model : CalibrationSpec
        How items are calibrated where no bank is given.
    """

    k: int = 100
    half_width: float = 0.02
    level: float = 0.95
    most: int = 10_000
    item_model: CalibrationSpec = field(default_factory=default_item_model)

    def __post_init__(self) -> None:
        """Check the choices."""
        check_whole("k", self.k, least=1)
        check_whole("most", self.most, least=1)
        check_fraction("level", self.level)
        if not 0.0 < self.half_width < 0.5:
            raise ParameterError(f"half_width must be between 0 and 0.5, got {self.half_width!r}.")


@one_blas_thread()
def sampling_plan(
    responses: ResponseMatrix,
    spec: SamplingPlanSpec | None = None,
    *,
    bank: Bank | None = None,
    models: Sequence[str] | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> SamplingPlan:
    """Say which items of each scenario to sample further, and how often, until pass@k is as precise as wanted.

    Samples go where they are expected to take away most of the variance of pass@k: to items whose pass rate is about
    1 / k as far as is known. That further samples also tell more of the model's ability, and so of items that get none,
    is not counted: the plan errs towards too many. When its samples are in, plan again.

    Parameters
    ----------
    responses : ResponseMatrix
        As for `pass_at_k_law`: the samples that there are.
    spec : SamplingPlanSpec or None
    bank, models, rng, progress
        As for `pass_at_k_law`.

    Returns
    -------
    SamplingPlan
        One plan for each model and scenario.

    Raises
    ------
    DataError
        As `pass_at_k_law`.
    """
    spec = SamplingPlanSpec() if spec is None else spec
    generator = as_generator(rng)
    rows = np.arange(responses.n_models) if models is None else responses.model_indices(models)
    counts = sample_counts(responses)
    items = sampled_items(responses, counts, counts, bank)
    scenarios, _ = sampled_scenarios(items, rows, spec.item_model, part_of(progress, 0.0, 0.5))
    fitted = [scenario for scenario in scenarios if scenario.item_model is not None]
    plans = []
    for number, (scenario, row) in enumerate((scenario, row) for scenario in fitted for row in rows.tolist()):
        progress("plan", 0.5 + 0.5 * number / (len(fitted) * rows.size))
        if scenario.used.n_trials[row, scenario.columns].any():
            plans.append(_plan(scenario, row, (responses.model_ids[row], items.item_ids), spec, generator))
    progress("plan", 1.0)
    return SamplingPlan(spec.k, spec.half_width, spec.level, tuple(plans))


def _plan(
    scenario: SampledScenario, row: int, names: tuple[str, list[str]], spec: SamplingPlanSpec, rng: np.random.Generator
) -> ScenarioPlan:
    """Plan for one model on one scenario, all items that the item model knows."""
    known = scenario.item_model
    if known is None:
        raise ParameterError(f"scenario {scenario.name!r} has no item model to plan by.")
    model_id, item_ids = names
    columns = known.columns
    counts = Counts(scenario.used.n_trials[row, columns], scenario.used.n_correct[row, columns])
    posterior = cell_posterior(known.parameters, known.prior, known.precision, counts, rng=rng)
    outlook = _outlook(posterior, spec.k, steps(spec.most))
    # of the mean over many items, which is nearly normal
    to_half_width = normal_reach(spec.level)
    wanted = (spec.half_width / to_half_width) ** 2
    at = _bought(outlook, wanted)
    now, after = outlook.variance(np.zeros_like(at)), outlook.variance(at)
    uniform = [outlook.variance(np.full_like(at, step)) for step in range(outlook.n_more.size)]
    return ScenarioPlan(
        model_id=model_id,
        scenario=scenario.name,
        item_ids=tuple(item_ids[j] for j in columns.tolist()),
        n_trials=counts.n_trials,
        n_correct=counts.n_correct,
        n_more=outlook.n_more[at],
        gain=outlook.drops(at) / now,
        half_width_now=to_half_width * float(np.sqrt(now)),
        half_width_after=to_half_width * float(np.sqrt(after)),
        is_reached=after <= wanted,
        n_uniform=_uniform(np.array(uniform), outlook.n_more, wanted, columns.size),
    )


def steps(most: int) -> IntArray:
    """Return the numbers of further samples that are tried: 0, 1, 2, 4, ... up to the most."""
    # doublings: one item may get up to twice the samples it needs, and a plan costs few steps
    doubled = 2 ** np.arange(int(np.log2(most)) + 1)
    return np.unique(np.concatenate([[0], doubled, [most]])).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Outlook:
    """Variance of pass@k that is left after further samples."""

    n_more: IntArray  # (n_steps,)
    within: FloatArray  # (n_steps, n_items): Each item's own part, given ability and precision
    # (n_steps, n_items): Factor of what ability and precision change about the item: the more samples, the less it
    # rests on them.
    shrinkage: FloatArray
    shared: FloatArray  # (n_draws, n_items): Those changes now, items' parts of pass@k by draw, less their means
    weights: FloatArray  # (n_draws,)

    def variance(self, at: IntArray) -> float:
        """Variance of pass@k with the item's samples at these steps, (n_items,)."""
        every = np.arange(at.size)
        together = self.shared @ self.shrinkage[at, every]  # (n_draws,)
        return float(self.within[at, every].sum() + self.weights @ together**2)

    def bound(self) -> FloatArray:
        """Variance split among items, (n_steps, n_items): exact without further samples, above it with any.

        The shared part is the sum of each item's covariance with the whole; with the factors of all other items left
        at one, an item's share falls as its own factor, and no item waits for others.
        """
        between = (self.weights * (self.shared.sum(axis=1))) @ self.shared  # (n_items,)
        result: FloatArray = self.within + self.shrinkage * np.maximum(between, 0.0)
        return result

    def drops(self, at: IntArray) -> FloatArray:
        """Fall of each item's part of the bound, (n_items,)."""
        bound = self.bound()
        result: FloatArray = bound[0] - bound[at, np.arange(at.size)]
        return result


def _outlook(posterior: CellPosterior, k: float, n_more: IntArray) -> _Outlook:
    """Find the variance that further samples of each item would leave."""
    order = np.argsort(posterior.theta[:, 0])
    middles = (np.arange(_N_DRAWS) + 0.5) / _N_DRAWS
    chosen = order[np.searchsorted(np.cumsum(posterior.weights[order]), middles).clip(max=order.size - 1)]
    left = expected_variances(posterior.alpha[chosen], posterior.beta[chosen], k, n_more)
    with np.errstate(divide="ignore", invalid="ignore"):
        shrinkage = np.where(left.between[0] > 0.0, np.sqrt(left.between / left.between[0]), 0.0)
    n_items = posterior.alpha.shape[1]
    means = np.exp(log_beta_failure(posterior.alpha, posterior.beta, k)) / n_items  # (n_draws, n_items)
    shared = means - posterior.weights @ means
    # the expected variance never rises with more samples; errors of the sum over counts must not make it rise
    return _Outlook(
        n_more,
        np.minimum.accumulate(left.within) / n_items**2,
        np.minimum.accumulate(shrinkage),
        shared,
        posterior.weights,
    )


def _bought(outlook: _Outlook, wanted: float) -> IntArray:
    """Find the step of each item after the fewest best purchases that leave no more variance than wanted."""
    item, step = best_purchases(outlook.bound(), outlook.n_more)
    n_items = outlook.within.shape[1]

    def after(n_bought: int) -> IntArray:
        at = np.zeros(n_items, dtype=np.int64)
        np.maximum.at(at, item[:n_bought], step[:n_bought])
        return at

    low, high = -1, item.size
    while high - low > 1:  # the variance falls with every purchase
        middle = (low + high) // 2
        low, high = (low, middle) if outlook.variance(after(middle)) <= wanted else (middle, high)
    return after(high)


def _uniform(variances: FloatArray, n_more: IntArray, wanted: float, n_items: int) -> int | None:
    """Count the samples of the same precision when every item gets as many; None when no step reaches it."""
    enough = np.flatnonzero(variances <= wanted)
    if not enough.size:
        return None
    last = int(enough[0])
    if last == 0:
        return 0
    # variance falls about as a power of the samples between two steps; log(m + 1) starts at 0
    x = np.log1p(n_more[last - 1 : last + 1].astype(np.float64))
    y = np.log(variances[last - 1 : last + 1])
    fraction = (np.log(wanted) - y[0]) / (y[1] - y[0])
    return n_items * int(np.ceil(np.expm1(x[0] + fraction * (x[1] - x[0]))))
