"""One transfer: who calibrates, which items are the source, and the target predicted for the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.errors import DataError, DataWarning, ParameterError, shown, warn
from itembank.irt.newton import map_abilities
from itembank.irt.parameters import ItemParameters
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.numerics.splits import random_folds, splits_of
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.scenario_fits import ItemSetFit, fit_items
from itembank.scaling.transfers.convergent import CorrelationInterval, correlate_abilities
from itembank.scaling.transfers.curves import (
    MINIMUM_MODELS,
    CurvePrediction,
    actual_curves,
    by_common_ability,
    by_line,
    clipped_logit,
    counted_items,
    logit_curves,
    predict,
    same_scale,
)
from itembank.scaling.transfers.transfer_specs import TransferSpec


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

    Give the responses of calibration models only: a split that has seen the models it is tested on knows something of
    their answers to the hard items.

    Returns easy, hard : (n_easy,), (n_hard,): Indices in rising order. Items that nobody answered are in neither.
    """
    means = np.round(item_means(responses), 12)  # two sums of the same responses may differ by rounding
    order = np.argsort(-means, kind="stable")
    order = order[~np.isnan(means[order])]
    n_easy = min(max(round(easy_fraction * order.size), 1), order.size - 1)
    return np.sort(order[:n_easy]), np.sort(order[n_easy:])


@dataclass(frozen=True, slots=True)
class ItemSets:
    """The two sets of items of a transfer, as columns of the responses."""

    source_name: str
    target_name: str
    source: IntArray  # (n_source,), (n_target,)
    target: IntArray  # (n_source,), (n_target,)


@dataclass(frozen=True, slots=True)
class Part:
    """Calibration models and the models whose target is predicted from them, on the same items."""

    calibration: ResponseMatrix
    asked: ResponseMatrix
    calibration_groups: tuple[str, ...] | None  # Relatives among the calibration models
    places: IntArray  # (n_asked,): Row of each asked model in the responses of the caller


def item_sets(calibration: ResponseMatrix, source: str, target: str | None, easy_fraction: float) -> ItemSets:
    """Find the items of the source and the target scenario; without a target, the source's easy and hard items."""
    if target == source:
        raise ParameterError(f"source and target must differ, got {source!r} twice. Leave the target out to go from "
                             "its easy to its hard items.")  # fmt: skip
    if target is not None:
        return ItemSets(source, target, _columns(calibration, source), _columns(calibration, target))
    columns = _columns(calibration, source)
    if columns.size < 2:
        raise DataError(f"a scenario needs two items or more to be divided, {source!r} has {columns.size}.")
    easy, hard = split_by_difficulty(calibration.responses[:, columns], easy_fraction)
    return ItemSets(f"{source} (easy)", f"{source} (hard)", columns[easy], columns[hard])


def named_part(
    responses: ResponseMatrix, calibration_models: Sequence[str], groups: Sequence[str] | None
) -> Iterator[Part]:
    """One part: these models calibrate, all others are asked."""
    rows = responses.model_indices(calibration_models)
    others = np.setdiff1d(np.arange(responses.n_models), rows)
    if others.size == 0:
        raise DataError("a transfer needs models that do not calibrate, got none besides the calibration models.")
    yield _part(responses, rows, others, groups)


def bank_part(past: ResponseMatrix, responses: ResponseMatrix) -> Iterator[Part]:
    """One part: the models of a bank calibrate, those of the responses are asked what they answered of its items."""
    both = sorted(set(past.model_ids) & set(responses.model_ids))
    if both:
        raise DataError(
            f"models asked about must not be calibration models of the bank, got {len(both)} that are: {shown(both)}. "
            "Leave them out, or give no bank."
        )
    yield Part(past, on_items_of(past, responses), None, np.arange(responses.n_models))


def folds(
    responses: ResponseMatrix, groups: Sequence[str] | None, n_folds: int, rng: np.random.Generator
) -> Iterator[Part]:
    """Leave out every part of the models once; groups stay together."""
    names = np.arange(responses.n_models).astype(str) if groups is None else np.asarray(groups, dtype=str)
    _, index = np.unique(names, return_inverse=True)
    n_groups = int(index.max()) + 1
    if n_groups < 2:
        raise DataError(
            f"leaving models out needs two groups of them or more, got {n_groups}. Name other groups (--group), the "
            "calibration models (--calibration-model), or a bank (--bank)."
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
    """Check that enough calibration models answered both sets, and that each asked model answered the source."""
    observed = part.calibration.observed
    both = observed[:, sets.source].any(axis=1) & observed[:, sets.target].any(axis=1)
    if both.sum() < MINIMUM_MODELS:
        raise DataError(
            f"a transfer needs at least {MINIMUM_MODELS} calibration models that answered items of both "
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


@dataclass(frozen=True, slots=True)
class PairValidity:
    """Correlation, over calibration models, of the abilities that source and target give."""

    correlation: float
    lower: float
    upper: float
    disattenuated: float  # Of the abilities themselves, without the errors of their estimates
    source_reliability: float
    target_reliability: float
    n_models: int


@dataclass(frozen=True, slots=True)
class FoldTransfer:
    """What one part of the models gave."""

    sets: ItemSets
    validity: PairValidity
    places: IntArray  # (n_asked,)
    theta: FloatArray  # (n_asked,): From the source items alone
    standard_errors: FloatArray  # (n_asked,)
    actual: FloatArray  # (n_asked, n_k)
    uninformed: FloatArray  # (n_asked, n_k): The mean of the calibration models: what is predicted without any response
    predictions: Mapping[str, CurvePrediction]


@dataclass(frozen=True, slots=True)
class _Scored:
    """Abilities of calibration models and of those asked, by one item model, each with standard errors."""

    fit: ItemSetFit
    calibration: FloatArray
    calibration_errors: FloatArray
    asked: FloatArray
    asked_errors: FloatArray


def transfer_part(
    part: Part, sets: ItemSets, spec: TransferSpec, item_model: CalibrationSpec, rng: np.random.Generator
) -> FoldTransfer:
    """Calibrate, check the convergent validity, and only then predict."""
    source = _scored(part, sets.source, sets.source_name, item_model)
    target = _scored(part, sets.target, sets.target_name, item_model)
    validity = _validity(part, sets, (source, target), spec, rng)
    check_validity(validity, sets, spec)
    actual = actual_curves(part.asked, sets.target, spec.k)
    past = actual_curves(part.calibration, sets.target, spec.k)
    predictions = _predictions(part, sets, past, spec, item_model)
    return FoldTransfer(
        sets=sets,
        validity=validity,
        places=part.places,
        theta=source.asked,
        standard_errors=source.asked_errors,
        actual=actual,
        uninformed=np.broadcast_to(mean_where_known(past), actual.shape),
        predictions=predictions,
    )


def check_validity(validity: PairValidity, sets: ItemSets, spec: TransferSpec) -> None:
    """Refuse a transfer between abilities that are not shown to be correlated."""
    if validity.lower > 0.0:
        return
    text = (
        f"abilities on {sets.source_name!r} and {sets.target_name!r} must be correlated for a transfer, got "
        f"{validity.correlation:.2f} ({spec.level:.0%} interval {validity.lower:.2f} to {validity.upper:.2f}, "
        f"{validity.n_models} calibration models)."
    )
    if not spec.is_forced:
        raise DataError(f"{text} They may measure different things, or models are too few to tell. Force it to see it "
                        "all the same.")  # fmt: skip
    warn(f"{text} The transfer was forced.", DataWarning)


def _scored(part: Part, columns: IntArray, name: str, item_model: CalibrationSpec) -> _Scored:
    """Fit some items on the calibration models, and score everybody in the same way."""
    try:
        fit = fit_items(name, part.calibration, columns, item_model)
    except DataError as error:
        raise DataError(f"items of {name!r}: {error}") from error
    if fit.calibration.thresholds:
        raise ParameterError(
            "a transfer predicts mean responses, so its item model must be of the responses as they are; this one "
            "makes them right or wrong by a threshold. Take the family 'beta' or 'binomial'."
        )
    theta, errors = score_items(fit, part.calibration)
    asked, asked_errors = score_items(fit, part.asked)
    return _Scored(fit, theta, errors, asked, asked_errors)


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


def _validity(
    part: Part, sets: ItemSets, scored: tuple[_Scored, _Scored], spec: TransferSpec, rng: np.random.Generator
) -> PairValidity:
    source, target = scored
    correlations = correlate_abilities(
        np.column_stack([source.calibration, target.calibration]),
        np.column_stack([source.calibration_errors, target.calibration_errors]),
        scenarios=(sets.source_name, sets.target_name),
        model_ids=tuple(part.calibration.model_ids),
        interval=CorrelationInterval(level=spec.level),
        groups=part.calibration_groups,
        rng=rng,
    )
    return PairValidity(
        correlation=float(correlations.observed.value[0, 1]),
        lower=float(correlations.observed.lower[0, 1]),
        upper=float(correlations.observed.upper[0, 1]),
        disattenuated=float(correlations.disattenuated.value[0, 1]),
        source_reliability=float(correlations.reliability[0]),
        target_reliability=float(correlations.reliability[1]),
        n_models=int(correlations.n_models_of_pair[0, 1]),
    )


def _predictions(
    part: Part, sets: ItemSets, past: FloatArray, spec: TransferSpec, item_model: CalibrationSpec
) -> dict[str, CurvePrediction]:
    """Predict by each method; the joint calibration serves two of them."""
    predictions = {}
    if "scores" in spec.methods:
        predictions["scores"] = _by_scores(part, sets, past, spec)
    if set(spec.methods) - {"scores"}:
        joint = _joint(part, sets, item_model)
        if "calibrated" in spec.methods:
            predictions["calibrated"] = _by_calibrated_curve(part, sets, past, joint, spec)
        if "common-scale" in spec.methods:
            predictive = predict(
                same_scale(joint.source, joint.target, joint.source_errors), joint.asked, joint.asked_errors
            )
            counted = counted_items(part.asked, joint.columns)
            predictions["common-scale"] = by_common_ability(joint.parameters, predictive, counted, spec.k, spec.level)
    return {name: predictions[name] for name in spec.methods}


@dataclass(frozen=True, slots=True)
class _Joint:
    """One calibration of both sets of items: the target's items, and abilities by the source's and the target's."""

    parameters: ItemParameters
    columns: IntArray
    source: FloatArray
    source_errors: FloatArray
    target: FloatArray
    asked: FloatArray
    asked_errors: FloatArray


def _joint(part: Part, sets: ItemSets, item_model: CalibrationSpec) -> _Joint:
    columns = np.concatenate([sets.source, sets.target])
    fit = fit_items(f"{sets.source_name} with {sets.target_name}", part.calibration, columns, item_model)
    source, source_errors = score_items(fit, part.calibration, among=sets.source)
    target, _ = score_items(fit, part.calibration, among=sets.target)
    asked, asked_errors = score_items(fit, part.asked, among=sets.source)
    inside = np.flatnonzero(np.isin(fit.columns, sets.target))
    parameters = fit.calibration.parameters.take(inside)
    return _Joint(parameters, fit.columns[inside], source, source_errors, target, asked, asked_errors)


def _by_calibrated_curve(
    part: Part, sets: ItemSets, past: FloatArray, joint: _Joint, spec: TransferSpec
) -> CurvePrediction:
    """Predict by the target's curve at the ability, put right by a line over the calibration models."""
    known = logit_curves(joint.parameters, joint.source, spec.k, counted_items(part.calibration, joint.columns))
    asked = logit_curves(joint.parameters, joint.asked, spec.k, counted_items(part.asked, joint.columns))
    return by_line(
        known[0],
        past,
        asked[0],
        source_errors=known[1] * joint.source_errors[:, None],
        asked_errors=asked[1] * joint.asked_errors[:, None],
        smallest=_half_an_answer(part.calibration, sets.target, spec.k),
        level=spec.level,
    )


def _by_scores(part: Part, sets: ItemSets, past: FloatArray, spec: TransferSpec) -> CurvePrediction:
    """Predict by the logit of the source's mean score in place of the curve."""
    smallest = _half_an_answer(part.calibration, sets.source, (1,))
    known, asked = (
        np.repeat(
            clipped_logit(mean_where_known(responses.responses[:, sets.source], axis=1), smallest)[:, None],
            len(spec.k),
            axis=1,
        )
        for responses in (part.calibration, part.asked)
    )
    return by_line(
        known,
        past,
        asked,
        source_errors=np.zeros_like(known),
        asked_errors=np.zeros_like(asked),
        smallest=_half_an_answer(part.calibration, sets.target, spec.k),
        level=spec.level,
    )


def _half_an_answer(responses: ResponseMatrix, columns: IntArray, k: tuple[int, ...]) -> FloatArray:
    """Half of what one right answer adds to a mean score, of one item or one sample of it, or to pass@k, (n_k,)."""
    if responses.n_trials is None:
        return np.full(len(k), 0.5 / columns.size)
    total = max(float(np.median(responses.n_trials[:, columns].sum(axis=1))), 1.0)
    result: FloatArray = np.minimum(0.5 * np.asarray(k) / total, 0.5 / columns.size)
    return result
