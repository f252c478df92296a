"""The verb `pass_at_k_law`: how often k samples of an item hold a right one (IRSL 3.2, the test-time law)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import DataError, ItembankWarning, ParameterError, shown, unsaid
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.content_order import in_content_order
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.pass_at_k.curve import Curve, pass_at_k_curve
from itembank_scaling.pass_at_k.interval_calibration import (
    REACH,
    IntervalFactors,
    factors_within,
    interval_factors,
    lowered,
    widened,
)
from itembank_scaling.pass_at_k.results import PassAtKLaw, PassCurves
from itembank_scaling.pass_at_k.samples import (
    SampleCounts,
    SampledItems,
    SampledScenario,
    ScenarioItemModel,
    check_budget,
    cut_down,
    fitted_item_model,
    sample_counts,
    sampled_items,
    sampled_scenarios,
)
from itembank_scaling.pass_at_k.specs import NEED_ITEM_MODEL, PassAtKSpec

_REASONS = {
    "others": "The factors come from past models that were given as few samples",
    "asked": "The factors come from the models asked about, given a tenth of their samples. Five other models with at "
    "least twice the samples would make them surer",
}
"""What the factors of intervals come from."""

_UNCHECKED_NOTE = (
    f"no other models with {REACH} times k samples show how rarely items are solved that no sample solved. Intervals "
    "reach over two shapes of pass rates, Beta and normal on the logit. For k above an item's samples, the low end "
    "counts the item as unsolved if none of them was right. Where the truth was known, 95 % intervals covered 87 to "
    "100 % of it up to ten times the samples, and 79 to 100 % at fifty times"
)


@one_blas_thread()
def pass_at_k_law(
    responses: ResponseMatrix,
    spec: PassAtKSpec | None = None,
    *,
    bank: Bank | None = None,
    models: Sequence[str] | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> PassAtKLaw:
    """Say how often at least one of k samples of an item is right, for any k, from few samples of every item.

    Parameters
    ----------
    responses : ResponseMatrix
        With counts (`n_trials`), of the models asked about; without a bank, of those that calibrate the items too.
    spec : PassAtKSpec or None
        Which k, by which methods, from what budget.
    bank : Bank or None
        Item model from past models, calibrated on counts; it must hold every item of the responses. None calibrates
        every scenario on these responses: a budget then binds the models asked about, others keep their samples.
    models : sequence of str or None
        Ids of the models asked about; None for all.
    rng : Generator, int or None
        For the budget's samples and the draws behind intervals.

    Raises
    ------
    DataError
        Without counts; for models or items that are not there; for a budget above the samples there are; and when no
        scenario can be calibrated.
    ParameterError
        When the unbiased method alone is asked for a k above the samples of an item, and for a bank whose responses
        were made binary.

    Examples
    --------
    >>> law = pass_at_k_law(responses, PassAtKSpec(k=(1, 10, 100)))  # doctest: +SKIP
    >>> law.rows()[0]["pass_at_k"]  # doctest: +SKIP
    """
    spec = PassAtKSpec() if spec is None else spec
    generator = as_generator(rng)
    names = responses.model_ids if models is None else models
    responses = in_content_order(responses)  # draws go from one to the next
    rows = responses.model_indices(names)
    truth = sample_counts(responses)
    used = truth
    if spec.budget is not None:
        check_budget(truth, spec.budget, responses, rows)
        used = cut_down(truth, np.sort(rows), spec.budget, generator)
    if spec.methods == ("unbiased",):
        _check_unbiased(used, spec, responses, rows)
    items = sampled_items(responses, truth, used, bank)
    item_model = spec.item_model if NEED_ITEM_MODEL & set(spec.methods) else None
    scenarios, notes = sampled_scenarios(items, rows, item_model, part_of(progress, 0.0, 0.5))
    curves = []
    is_unchecked = False
    calibrated: dict[str, IntervalFactors | None] = {}
    k = np.array(sorted(set(spec.k)), dtype=np.float64)
    n_trials = used.n_trials[rows]
    within = float(np.median(n_trials[n_trials > 0]) if n_trials.any() else 1.0)
    if within < k[-1]:  # as pass@k rises, a low end at k that the samples reach holds beyond them, asked for or not
        k = np.unique(np.append(k, np.floor(within)))
    is_asked = np.isin(k, spec.k)
    for number, scenario in enumerate(scenarios):
        asked = [row for row in rows.tolist() if scenario.used.n_trials[row, scenario.columns].any()]
        factors = _factors(items, scenario, np.sort(rows), spec, generator)
        checked = 0.0 if factors is None else factors.largest_k
        found = {}
        for place, row in enumerate(sorted(asked)):
            progress(f"pass@k {scenario.name}", 0.5 + 0.5 * (number + place / len(asked)) / len(scenarios))
            curve = pass_at_k_curve(scenario, row, k, spec, generator, checked=checked)
            if factors is not None:
                curve = widened(curve, curve.values[spec.methods.index("irsl")], factors.at(k))
            found[row] = lowered(curve, k > checked).at(is_asked)
            is_unchecked |= scenario.item_model is not None and k[-1] > checked
        curves += [found[row] for row in asked]
        if "irsl" in spec.methods and scenario.item_model is not None:
            calibrated[scenario.name] = factors
    k = k[is_asked]
    notes += _interval_notes(calibrated, k)
    if is_unchecked and "irsl" in spec.methods:
        notes.append(_UNCHECKED_NOTE)
    progress("pass@k", 1.0)
    return _packed(items, curves, k, spec, notes)


def _factors(
    items: SampledItems, scenario: SampledScenario, rows: IntArray, spec: PassAtKSpec, rng: np.random.Generator
) -> IntervalFactors | None:
    """Find the factors by which intervals of a scenario must be wider; None where they are not calibrated."""
    if spec.interval == "model-based" or "irsl" not in spec.methods or scenario.item_model is None:
        return None
    trials = scenario.used.n_trials[np.ix_(rows, scenario.columns)]
    budget = int(np.median(trials[trials > 0]))
    if items.bank is None:  # all samples of those asked about stay unseen
        known, others = items.truth, np.setdiff1d(np.arange(items.responses.n_models), rows)
    else:
        known, others = sample_counts(items.bank.responses), np.arange(items.bank.n_models)

    def refit(without: IntArray) -> ScenarioItemModel | None:
        left = np.setdiff1d(np.arange(items.responses.n_models), without)
        responses, counts = items.responses.take(models=left), items.used.take(models=left)
        with unsaid(ItembankWarning):  # the fit to all models told what there is to tell
            try:
                return fitted_item_model(scenario.name, responses, counts, scenario.columns, spec.item_model)
            except DataError:
                return None

    factors = interval_factors(scenario, known, others, budget=budget, spec=spec, rng=rng)
    return factors or factors_within(
        scenario, rows, budget=budget, spec=spec, rng=rng, refit=refit if items.bank is None else None
    )


def _interval_notes(calibrated: Mapping[str, IntervalFactors | None], k: FloatArray) -> list[str]:
    """State the models that the intervals of the scenarios rest on, in one note for all that rest on the same."""
    alone = [name for name, factors in calibrated.items() if factors is None]
    notes = [f"intervals of {shown(alone)} rest on the item model"] if alone else []
    few = [name for name, factors in calibrated.items() if factors is not None and factors.rest_on == "none"]
    if few:
        notes.append(
            f"intervals of {shown(few)} rest on the item model, as too few models could tell how wide they must be. "
            "Five other models with at least twice the samples can"
        )
    for models, reason in _REASONS.items():
        widened_by = [
            f"{name!r} {factors.at(k)[0].min():.2f} to {factors.at(k)[0].max():.2f} ({factors.n_models} models)"
            for name, factors in calibrated.items()
            if factors is not None and factors.rest_on == models
        ]
        if widened_by:
            notes.append(
                f"intervals are this many times as wide as the item model says: {', '.join(widened_by)}. {reason}"
            )
    return notes


def _check_unbiased(used: SampleCounts, spec: PassAtKSpec, responses: ResponseMatrix, rows: IntArray) -> None:
    """Refuse a k above the samples of an item where nothing but the unbiased estimate was asked for."""
    n_trials = used.n_trials[rows]
    is_short: BoolArray = (n_trials > 0) & (n_trials < max(spec.k))
    if is_short.any():
        i, j = np.nonzero(is_short)
        cells = [
            f"{responses.model_ids[rows[a]]}, {responses.item_ids[b]}"
            for a, b in zip(i.tolist(), j.tolist(), strict=True)
        ]
        least = int(n_trials[is_short].min())
        raise ParameterError(
            f"k must be at most the samples of every item for the unbiased estimate, got k = {max(spec.k)} with as few "
            f"as {least} samples in {len(cells)} cells: {shown(cells)}. Take k up to {least}, or method 'irsl', which "
            "looks beyond the samples."
        )


def _packed(items: SampledItems, curves: list[Curve], k: FloatArray, spec: PassAtKSpec, notes: list[str]) -> PassAtKLaw:
    """Put curves together, and say what the numbers rest on where they do not say so themselves."""
    n_items, is_compared = len(items.item_ids), spec.budget is not None
    failure = np.full((len(curves), n_items), np.nan)
    n_trials, n_correct = np.zeros((2, len(curves), n_items), dtype=np.int64)
    for i, curve in enumerate(curves):
        failure[i, curve.columns] = curve.failure
        n_trials[i, curve.columns] = items.used.n_trials[curve.row, curve.columns]
        n_correct[i, curve.columns] = items.used.n_correct[curve.row, curve.columns]
    ids = items.responses.model_ids
    law = PassAtKLaw(
        tuple(ids[curve.row] for curve in curves),
        tuple(curve.scenario for curve in curves),
        k,
        spec.methods,
        spec.level,
        _pass_curves(curves, 0, has_truth=is_compared),
        _pass_curves(curves, 1, has_truth=is_compared),
        spec.minimum_pass_rate,
        spec.budget,
        tuple(items.item_ids),
        n_trials,
        n_correct,
        failure,
        np.array([curve.ability for curve in curves]),
        np.array([curve.ability_sd for curve in curves]),
        (),
    )
    said = list(notes)
    if "unbiased" in law.methods and np.isnan(law.values("unbiased")).any():
        said.append("the unbiased estimate has no value where k exceeds the samples of some item: these are empty")
    if law.budget is not None:
        said.append(
            f"estimates use {law.budget} samples of each item, drawn without replacement. The truth is what all "
            "samples say, and is empty where k is larger than they can tell"
        )
    n_dropped = int(np.sum(law.all_items.n_items - law.kept_items.n_items))
    if n_dropped:
        said.append(
            f"values of kept items leave out {n_dropped} of {int(law.all_items.n_items.sum())} pairs of model and item "
            f"whose pass rate is below {law.minimum_pass_rate:g}. It takes all samples to know which they are"
        )
    return replace(law, notes=tuple(said))


def _pass_curves(curves: list[Curve], which: int, *, has_truth: bool) -> PassCurves:
    return PassCurves(
        np.stack([curve.values[:, which] for curve in curves], axis=1),
        np.stack([curve.low[which] for curve in curves]),
        np.stack([curve.high[which] for curve in curves]),
        np.stack([curve.truth[which] for curve in curves]) if has_truth else None,
        np.array([curve.n_items[which] for curve in curves]),
    )
