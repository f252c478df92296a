"""The verb `pass_at_k_law`: how often k samples of an item hold a right one (P3 3.2, the test-time law)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.errors import DataError, DataWarning, ParameterError, shown, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.random import as_generator
from itembank.numerics.threads import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.scaling.pass_at_k_curve import Curve, SampledScenario, pass_at_k_curve
from itembank.scaling.pass_at_k_results import ItemEvidence, PassAtKLaw, PassCurves
from itembank.scaling.pass_at_k_specs import NEED_ITEM_MODEL, PassAtKSpec
from itembank.scaling.sample_counts import SampleCounts, check_budget, cut_down, sample_counts
from itembank.scaling.scenario_item_models import ScenarioItemModel, fitted_item_model, item_model_of_bank


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

    Returns
    -------
    PassAtKLaw

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
    rows = np.arange(responses.n_models) if models is None else responses.model_indices(models)
    truth = sample_counts(responses)
    used = truth
    if spec.budget is not None:
        check_budget(truth, spec.budget, responses, rows)
        used = cut_down(truth, rows, spec.budget, generator)
    if spec.methods == ("unbiased",):
        _check_unbiased(used, spec, responses, rows)
    items = _items(responses, truth, used, bank)
    notes: list[str] = []
    scenarios = list(_scenarios(items, rows, spec, notes, progress))
    pairs = [(one, row) for one in scenarios for row in rows.tolist() if used.n_trials[row].any()]
    curves = []
    k = np.array(sorted(set(spec.k)), dtype=np.float64)
    for number, (one, row) in enumerate(pairs):
        progress("pass@k", 0.5 + 0.5 * number / len(pairs))
        if one.used.n_trials[row, one.columns].any():
            curves.append(pass_at_k_curve(one, row, k, spec, generator))
    progress("pass@k", 1.0)
    return _packed(items, curves, k, spec, notes)


@dataclass(frozen=True, slots=True)
class _Items:
    """The items that a law is about, a bank's or those of the responses, with the samples of all models."""

    responses: ResponseMatrix
    bank: Bank | None
    item_ids: list[str]
    scenarios: list[str]
    truth: SampleCounts
    used: SampleCounts


def _items(responses: ResponseMatrix, truth: SampleCounts, used: SampleCounts, bank: Bank | None) -> _Items:
    """Lay samples out over the items of the bank; without one they stay as they are."""
    if bank is None:
        return _Items(responses, None, responses.item_ids, responses.items["scenario"].to_list(), truth, used)
    where = bank.responses.item_indices(responses.item_ids)
    spread = [one.spread(where, bank.n_items) for one in (truth, used)]
    return _Items(responses, bank, bank.item_ids, bank.responses.items["scenario"].to_list(), *spread)


def _scenarios(
    items: _Items, rows: IntArray, spec: PassAtKSpec, notes: list[str], progress: ProgressCallback
) -> list[SampledScenario]:
    """Find the item model of every scenario that a model asked about has samples of; notes tell those without."""
    needs_model = bool(NEED_ITEM_MODEL & set(spec.methods))
    names = np.array(items.scenarios)
    asked = [name for name in dict.fromkeys(items.scenarios) if items.used.n_trials[np.ix_(rows, names == name)].any()]
    found = []
    for number, name in enumerate(asked):
        progress(f"scenario {name}", 0.5 * number / len(asked))
        columns = np.flatnonzero(names == name)
        item_model = _item_model(items, columns, spec, name, notes) if needs_model else None
        found.append(SampledScenario(name, columns, items.truth, items.used, item_model))
    if needs_model and all(one.item_model is None for one in found):
        raise DataError(
            f"IRSL needs an item model of at least one scenario: {' '.join(notes)} Give a bank, or take methods "
            "'jeffreys', 'plug-in' and 'unbiased'."
        )
    for text in notes:
        warn(text, DataWarning)
    return found


def _item_model(
    items: _Items, columns: IntArray, spec: PassAtKSpec, name: str, notes: list[str]
) -> ScenarioItemModel | None:
    """Take the item model from the bank, or fit one; a scenario that cannot be fitted is noted."""
    if items.bank is not None:
        return item_model_of_bank(items.bank, columns)
    try:
        return fitted_item_model(items.responses, items.used, columns, spec.item_model)
    except DataError as error:
        notes.append(f"scenario {name!r} has no item model: {error}")
        return None


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


def _packed(items: _Items, curves: list[Curve], k: FloatArray, spec: PassAtKSpec, notes: list[str]) -> PassAtKLaw:
    """Put curves together, with what a reader of their numbers should know."""
    n_items, is_compared = len(items.item_ids), spec.budget is not None
    failure = np.full((len(curves), n_items), np.nan)
    n_trials, n_correct = np.zeros((2, len(curves), n_items), dtype=np.int64)
    for i, one in enumerate(curves):
        failure[i, one.columns] = one.failure
        n_trials[i, one.columns] = items.used.n_trials[one.row, one.columns]
        n_correct[i, one.columns] = items.used.n_correct[one.row, one.columns]
    ids = items.responses.model_ids
    law = PassAtKLaw(
        tuple(ids[one.row] for one in curves),
        tuple(one.scenario for one in curves),
        k,
        spec.methods,
        spec.level,
        _pass_curves(curves, 0, has_truth=is_compared),
        _pass_curves(curves, 1, has_truth=is_compared),
        spec.minimum_pass_rate,
        spec.budget,
        ItemEvidence(tuple(items.item_ids), n_trials, n_correct, failure),
        np.array([one.ability for one in curves]),
        np.array([one.ability_sd for one in curves]),
        (),
    )
    return law.with_notes((*notes, *_notes(law)))


def _pass_curves(curves: list[Curve], which: int, *, has_truth: bool) -> PassCurves:
    """Curves over one of the sets of items."""
    return PassCurves(
        np.stack([one.values[:, which] for one in curves], axis=1),
        np.stack([one.low[which] for one in curves]),
        np.stack([one.high[which] for one in curves]),
        np.stack([one.truth[which] for one in curves]) if has_truth else None,
        np.array([one.n_items[which] for one in curves]),
    )


def _notes(law: PassAtKLaw) -> list[str]:
    """Say what the numbers rest on where they do not say so themselves."""
    notes = []
    if "unbiased" in law.methods and np.isnan(law.values("unbiased")).any():
        notes.append("the unbiased estimate has no value where k exceeds the samples of some item: these are empty")
    if law.budget is not None:
        notes.append(
            f"estimates see {law.budget} samples of each item, drawn without replacement; the truth is the unbiased "
            "estimate from all samples, and 1 - (1 - pass rate)^k where k exceeds those of an item"
        )
    n_dropped = int(np.sum(law.all_items.n_items - law.kept_items.n_items))
    if n_dropped:
        notes.append(
            f"values of kept items leave out {n_dropped} of {int(law.all_items.n_items.sum())} pairs of model and item "
            f"whose pass rate in all samples is below {law.minimum_pass_rate:g}: only who has all samples knows which"
        )
    return notes
