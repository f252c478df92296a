"""Methods of a transfer: from what past models and those asked answered to the target's curves.

And who calibrates, who is asked, and which items are the source and the target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.errors import DataError, ParameterError, shown
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.splits import random_folds, splits_of
from itembank.responses.content_order import content_order, numbered_groups
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.scenario_fits import ItemSetFit, fit_items
from itembank_scaling.transfers.correlations import WithInterval
from itembank_scaling.transfers.curves import (
    MINIMUM_MODELS,
    actual_curves,
    by_line,
    clipped_logit,
    counted_items,
    logit_curves,
    mean_curves,
    quantiles,
    same_scale,
)
from itembank_scaling.transfers.transfer_specs import TransferSpec


@dataclass(frozen=True, slots=True)
class ItemSets:
    """The two sets of items of a transfer, as columns of the responses."""

    source_name: str
    target_name: str
    source: IntArray  # (n_source,), (n_target,)
    target: IntArray  # (n_source,), (n_target,)
    # (n_calibration, n_items): The same for each past model. What is hard for it others say: among items chosen by its
    # own answers, it would be too good at the easy ones and too bad at the hard ones, and a new model would not
    past_source: BoolArray
    past_target: BoolArray


@dataclass(frozen=True, slots=True)
class Part:
    """Past models and the models whose target is predicted from them, on the same items."""

    calibration: ResponseMatrix
    asked: ResponseMatrix
    calibration_groups: tuple[str, ...] | None  # Relatives among the past models
    places: IntArray  # (n_asked,): Row of each asked model in the responses of the caller


class Joint(NamedTuple):
    """One calibration of both sets of items, the target's items, and abilities by the source's and the target's."""

    every: ItemSetFit
    parameters: ItemParameters
    columns: IntArray
    source: FloatArray
    source_errors: FloatArray
    target: FloatArray
    asked: FloatArray
    asked_errors: FloatArray


@dataclass(frozen=True)
class TransferData:
    """What every method of a transfer takes."""

    part: Part
    sets: ItemSets
    spec: TransferSpec
    item_model: CalibrationSpec

    @property
    def columns(self) -> IntArray:
        """The items of both sets."""
        return np.concatenate([self.sets.source, self.sets.target])

    @cached_property
    def past_source(self) -> ResponseMatrix:
        """What past models answered to the items that are the source for them."""
        return _among(self.part.calibration, self.sets.past_source)

    @cached_property
    def past_target(self) -> ResponseMatrix:
        """The same of the target."""
        return _among(self.part.calibration, self.sets.past_target)

    @cached_property
    def past(self) -> FloatArray:
        """The target of the past models, (n_calibration, n_k)."""
        return actual_curves(self.past_target, self.columns, self.spec.k)

    @cached_property
    def joint(self) -> Joint:
        """The joint calibration, made for the first method that asks for it."""
        sets, part = self.sets, self.part
        name = f"{sets.source_name} with {sets.target_name}"
        fit = fit_items(name, part.calibration, self.columns, self.item_model)
        source, source_errors = score_items(fit, self.past_source)
        target, _ = score_items(fit, self.past_target)
        asked, asked_errors = score_items(fit, part.asked, among=sets.source)
        inside = np.flatnonzero(np.isin(fit.columns, sets.target))
        parameters = fit.calibration.parameters.take(inside)
        return Joint(fit, parameters, fit.columns[inside], source, source_errors, target, asked, asked_errors)


def by_calibrated_curve(data: TransferData) -> WithInterval:
    """Predict by the target's curve at the ability, put right by a line over the past models."""
    part, spec, joint = data.part, data.spec, data.joint
    every = joint.every
    counted = counted_items(data.past_target, every.columns)
    known = logit_curves(every.calibration.parameters, joint.source, spec.k, counted)
    asked = logit_curves(joint.parameters, joint.asked, spec.k, counted_items(part.asked, joint.columns))
    return by_line(
        known[0],
        data.past,
        asked[0],
        source_errors=known[1] * joint.source_errors[:, None],
        asked_errors=asked[1] * joint.asked_errors[:, None],
        smallest=_half_an_answer(part.calibration, data.sets.target, spec.k),
        level=spec.level,
    )


def by_common_scale(data: TransferData) -> WithInterval:
    """Put the source's ability into the target's curve as it is."""
    joint = data.joint
    link = same_scale(joint.source, joint.target, joint.source_errors)
    counted = counted_items(data.part.asked, joint.columns)
    abilities = quantiles(link, joint.asked, joint.asked_errors, data.spec.level)
    value, low, high = (mean_curves(joint.parameters, theta, data.spec.k, counted) for theta in abilities)
    return WithInterval(value, np.minimum(low, high), np.maximum(low, high))


def by_scores(data: TransferData) -> WithInterval:
    """Predict by the logit of the source's mean score in place of the curve."""
    part, sets, spec = data.part, data.sets, data.spec
    smallest = _half_an_answer(part.calibration, sets.source, (1,))
    known, asked = (
        np.repeat(
            clipped_logit(mean_where_known(responses.responses[:, columns], axis=1), smallest)[:, None],
            len(spec.k),
            axis=1,
        )
        for responses, columns in ((data.past_source, data.columns), (part.asked, sets.source))
    )
    return by_line(
        known,
        data.past,
        asked,
        source_errors=np.zeros_like(known),
        asked_errors=np.zeros_like(asked),
        smallest=_half_an_answer(part.calibration, sets.target, spec.k),
        level=spec.level,
    )


def score_items(
    fit: ItemSetFit, responses: ResponseMatrix, *, among: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Ability and standard error of each model, (n_models,), from the fit's items, or from some of them.

    NaN for a model that answered none of them.
    """
    inside = np.ones(fit.columns.size, dtype=bool) if among is None else np.isin(fit.columns, among)
    used = fit.columns[inside]
    values = responses.responses[:, used]
    n_trials = None if responses.n_trials is None else responses.n_trials[:, used].astype(np.float64)
    abilities = map_abilities(
        fit.calibration.parameters.take(np.flatnonzero(inside)), values, fit.calibration.prior, n_trials=n_trials
    )
    is_silent = np.isnan(values).all(axis=1)
    return np.where(is_silent, np.nan, abilities.theta[:, 0]), np.where(
        is_silent, np.nan, abilities.standard_errors[:, 0]
    )


def _among(responses: ResponseMatrix, chosen: BoolArray) -> ResponseMatrix:
    """Return the same models and items with the chosen responses alone, (n_models, n_items)."""
    n_trials = None if responses.n_trials is None else np.where(chosen, responses.n_trials, 0)
    values = np.where(chosen, responses.responses, np.nan)
    return ResponseMatrix(values, responses.models, responses.items, n_trials)


def _half_an_answer(responses: ResponseMatrix, columns: IntArray, k: tuple[int, ...]) -> FloatArray:
    """Half of what one right answer adds to a mean score, of one item or one sample of it, or to pass@k, (n_k,)."""
    if responses.n_trials is None:
        return np.full(len(k), 0.5 / columns.size)
    total = max(float(np.median(responses.n_trials[:, columns].sum(axis=1))), 1.0)
    return np.minimum(0.5 * np.asarray(k) / total, 0.5 / columns.size)


def item_means(
    responses: FloatArray,  # (n_models, n_items): NaN where missing
) -> FloatArray:
    """Mean response to each item, put right for who answered it, (n_items,).

    The grand mean, plus the mean over the models that answered of ``response - the model's own mean``. With no
    response missing this is the item's mean. NaN where nobody answered.
    """
    known = ~np.isnan(responses)
    values = np.where(known, responses, 0.0)
    of_model = values.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    surplus = np.where(known, values - of_model[:, None], 0.0).sum(axis=0)
    n_answers = known.sum(axis=0)
    grand = of_model[known.any(axis=1)].mean() if known.any() else np.nan
    result: FloatArray = np.divide(surplus, n_answers, out=np.full(n_answers.shape, np.nan), where=n_answers > 0)
    return grand + result


def split_by_difficulty(responses: FloatArray, easy_fraction: float) -> tuple[IntArray, IntArray]:
    """Divide items into easy and hard ones by `item_means`; ties go by their place.

    Give the responses of past models only: a split that has seen the models it is tested on knows something of
    their answers to the hard items.

    Returns easy, hard : (n_easy,), (n_hard,): Indices in rising order. Items that nobody answered are in neither.
    """
    means = np.round(item_means(responses), 12)  # two sums of the same responses may differ by rounding
    order = np.argsort(-means, kind="stable")
    order = order[~np.isnan(means[order])]
    n_easy = min(max(round(easy_fraction * order.size), 1), order.size - 1)
    return np.sort(order[:n_easy]), np.sort(order[n_easy:])


def item_sets(part: Part, source: str, target: str | None, easy_fraction: float) -> ItemSets:
    """Find the items of the source and the target scenario; without a target, the source's easy and hard items."""
    calibration = part.calibration
    past_source, past_target = np.zeros((2, calibration.n_models, calibration.n_items), dtype=bool)
    if target == source:
        raise ParameterError(f"source and target must differ, got {source!r} twice. Leave the target out to go from "
                             "its easy to its hard items.")  # fmt: skip
    if target is not None:
        columns, others = _columns(calibration, source), _columns(calibration, target)
        past_source[:, columns], past_target[:, others] = True, True
        return ItemSets(source, target, columns, others, past_source, past_target)
    columns = _columns(calibration, source)
    if columns.size < 2:
        raise DataError(f"a scenario needs two items or more to be divided, {source!r} has {columns.size}.")
    values = calibration.responses[:, columns]
    easy, hard = split_by_difficulty(values, easy_fraction)
    most_folds = 10  # of past models, relatives together: nine tenths of them say nearly the same of items as all
    fold = numbered_groups(part.calibration_groups, content_order(calibration).models) % most_folds
    for number in range(int(fold.max()) + 1):
        others = fold != number if fold.any() else fold == number
        for_them = split_by_difficulty(values[others], easy_fraction)
        for chosen, items in zip((past_source, past_target), for_them, strict=True):
            chosen[np.ix_(fold == number, columns[items])] = True
    names = (f"{source} (easy)", f"{source} (hard)")
    return ItemSets(*names, columns[easy], columns[hard], past_source, past_target)


def named_part(
    responses: ResponseMatrix, calibration_models: Sequence[str], groups: Sequence[str] | None
) -> Iterator[Part]:
    """One part: these models calibrate, all others are asked."""
    rows = responses.model_indices(calibration_models)
    others = np.setdiff1d(np.arange(responses.n_models), rows)
    if others.size == 0:
        raise DataError("a transfer needs models to predict, got none besides the past models.")
    yield _part(responses, rows, others, groups)


def bank_part(past: ResponseMatrix, responses: ResponseMatrix) -> Iterator[Part]:
    """One part: the models of a bank calibrate, those of the responses are asked what they answered of its items."""
    both = sorted(set(past.model_ids) & set(responses.model_ids))
    if both:
        raise DataError(
            f"models asked about must not be past models of the bank, got {len(both)} that are: {shown(both)}. "
            "Leave them out, or give no bank."
        )
    yield Part(past, on_items_of(past, responses), None, np.arange(responses.n_models))


def folds(
    responses: ResponseMatrix, groups: Sequence[str] | None, n_folds: int, rng: np.random.Generator
) -> Iterator[Part]:
    """Ask every part of the models once, calibrated on the others; groups stay together."""
    index = numbered_groups(groups, content_order(responses).models)
    n_groups = int(index.max()) + 1
    if n_groups < 2:
        raise DataError(
            f"cross-validation needs two groups of models or more, got {n_groups}. Name other groups (--clusters), "
            "or give a bank of past models (--bank)."
        )
    for split in splits_of(random_folds(n_groups, min(n_folds, n_groups), rng)[index]):
        yield _part(responses, split.train, split.test, groups)


def on_items_of(past: ResponseMatrix, responses: ResponseMatrix) -> ResponseMatrix:
    """Put responses in the columns of others; NaN, and no trials, where an item was not asked."""
    columns = past.item_indices(responses.item_ids)
    shape = (responses.n_models, past.n_items)
    values = np.full(shape, np.nan)
    values[:, columns] = responses.responses
    n_trials = None
    if responses.n_trials is not None:
        n_trials = np.zeros(shape, dtype=responses.n_trials.dtype)
        n_trials[:, columns] = responses.n_trials
    return ResponseMatrix(values, responses.models, past.items, n_trials)


def check_answers(part: Part, sets: ItemSets) -> None:
    """Check that enough past models answered both sets, and that each asked model answered the source."""
    observed = part.calibration.observed
    both = observed[:, sets.source].any(axis=1) & observed[:, sets.target].any(axis=1)
    if both.sum() < MINIMUM_MODELS:
        raise DataError(
            f"a transfer needs at least {MINIMUM_MODELS} past models that answered items of both "
            f"{sets.source_name!r} and {sets.target_name!r}, got {int(both.sum())} of {both.size}."
        )
    silent = np.flatnonzero(~part.asked.observed[:, sets.source].any(axis=1))
    if silent.size == part.asked.n_models:
        raise DataError(
            f"models must answer items of {sets.source_name!r} to be predicted, got none that does: "
            f"{shown(part.asked.model_ids)}."
        )


def _part(responses: ResponseMatrix, rows: IntArray, others: IntArray, groups: Sequence[str] | None) -> Part:
    relatives = None if groups is None else tuple(str(groups[row]) for row in rows.tolist())
    return Part(responses.take(models=rows), responses.take(models=others), relatives, others)


def _columns(responses: ResponseMatrix, scenario: str) -> IntArray:
    names = responses.items["scenario"].to_list()
    columns = np.array([place for place, name in enumerate(names) if name == scenario], dtype=np.int64)
    if columns.size == 0:
        raise DataError(f"a scenario of the responses must be named, got {scenario!r}; there are "
                        f"{shown(list(dict.fromkeys(names)))}.")  # fmt: skip
    return columns
