"""Banks calibrated without some of the calibration models, so that methods can be tried on these models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from itembank.bank.bank_cache import BankCache, cache_name
from itembank.bank.banks import Bank, Calibration
from itembank.bank.known_scores import ENOUGH
from itembank.bank.marks import is_adaptive
from itembank.calibration.calibrate import MINIMUM_MODELS, calibrate, known_lower_asymptote
from itembank.calibration.calibration_specs import METHODS, CalibrationSpec, ItemModel
from itembank.calibration.families import without_repeated_warnings
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError, IntegrityError, ParameterError
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.irt.steps import Steps
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import parts_with_progress
from itembank.numerics.splits import Split, dealt_out, splits_of
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import order_by_answers
from itembank.responses.targets import ScoreTargets

MINIMUM_FOR_FOLDS = ENOUGH
"""With fewer calibration models whose scores are known neither the models left out nor those that remain are enough to
learn from."""
MANY_MODELS = 100
N_FOLDS_MANY, N_FOLDS_FEW = 5, 10
"""With few models a fit is cheap and each model left out matters more: more, smaller folds."""
TOLERANCE = 1e-5
"""Tolerance of the fits, ten times the default: it changes predictions by far less than leaving models out does.

Folds of a bank that was fitted with a larger tolerance take that tolerance."""
SEED = 20
MAY_BE_INFINITE = ("thresholds_", "places_")
"""Beginnings of the names of arrays of a fold that need not be finite."""


@dataclass(frozen=True)
class Fold:
    """Some calibration models, and a bank that has not seen them."""

    number: int  # From 0
    held_out: IntArray  # (n_held_out,): Rows of the whole bank's responses
    # Puts the bank together: that takes a copy of the responses, which what was tried before does not need.
    make_bank: Callable[[], Bank]

    @cached_property
    def bank(self) -> Bank:
        """Bank of the other models; same items in the same order, same targets."""
        return self.make_bank()

    def __reduce__(self) -> tuple[type["Fold"], tuple[int, IntArray, Callable[[], Bank]]]:
        """Send the bank itself to other processes, without what it is made of."""
        return Fold, (self.number, self.held_out, partial(_itself, self.bank))


def folds(bank: Bank, *, progress: ProgressCallback = silent) -> tuple[Fold, ...]:
    """Calibrate the bank's items anew without each tenth (with 100 models or more: fifth) of its models.

    Only models with a known score (`Bank.known_scores`) are left out, since the others cannot tell an error: these
    take part in every fit, as they do in the bank's. Of models that answer alike one is left out and tried
    (`Bank.distinct_models`); the others are neither tried nor in the fit without it. The item model, its number of
    dimensions and gp-IRT's b stay those of the whole bank. The parameters are kept in the bank's cache, so that this
    takes time once.

    Returns
    -------
    tuple of Fold
        Empty with fewer than ten models to try, or where a fit without some of them is impossible.
    """
    if bank.distinct_models.size < MINIMUM_FOR_FOLDS:
        return ()
    return bank.cache.remember("folds", lambda: _make_folds(bank, progress))


def fold_numbers(bank: Bank) -> IntArray:
    """Return the number of the fold that leaves each calibration model out, (n_models,); -1 where none does."""
    result = np.full(bank.n_models, -1, dtype=np.int64)
    for fold in folds(bank):
        result[fold.held_out] = fold.number
    return result


def spec_of(calibration: Calibration) -> CalibrationSpec:
    """Return the spec that a calibration was made with, as far as the fit depends on it.

    Raises
    ------
    IntegrityError
        When the bank states choices of its calibration that no calibration can have.
    """
    default = METHODS.kinds[calibration.method]()
    try:
        return replace(
            default,
            item_model=cast("ItemModel", calibration.item_model),
            n_dims=calibration.n_dims,
            known_guessing=bool(np.any(calibration.parameters.lower_asymptote > 0.0)),
            family=calibration.parameters.family,
            tolerance=default.tolerance if calibration.tolerance is None else calibration.tolerance,
            **_known_options(default, calibration.options),
        )
    except (ParameterError, TypeError) as error:
        raise IntegrityError(
            f"the bank says of its calibration what cannot be: {error} Calibrate the bank again."
        ) from error


def _known_options(default: CalibrationSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that this release's spec has."""
    names = {field.name for field in fields(default)} - {"family"}  # the parameters say what 'auto' came to
    return {name: value for name, value in options.items() if name in names}


def _make_folds(bank: Bank, progress: ProgressCallback) -> tuple[Fold, ...]:
    splits = _splits(bank)
    try:
        arrays = bank.cache.arrays(
            "folds", lambda: _fit_all(bank, splits, progress), fits=lambda found: _is_whole(found, bank, splits)
        )
    except DataError:  # without some models the rest may leave no item that tells them apart
        return ()
    without_cache = replace(bank)  # folds lie in the cache: with it they would hold themselves
    return tuple(
        Fold(number, split.test, partial(_fold_bank, without_cache, split.train, arrays, number, _cache(bank, split)))
        for number, split in enumerate(splits)
    )


def _splits(bank: Bank) -> list[Split]:
    """Deal out the models to try in order of their scores; their siblings are neither tried nor trained on."""
    tried, group = bank.distinct_models, bank.siblings
    order = order_by_answers(bank.responses, tried)
    n_folds = N_FOLDS_MANY if tried.size >= MANY_MODELS else N_FOLDS_FEW
    fold = np.full(bank.n_models, -1, dtype=np.int64)
    fold[group[tried]] = dealt_out(order, n_folds, np.random.default_rng(SEED))
    return [Split(split.train, np.intersect1d(split.test, tried)) for split in splits_of(fold[group])]


def _fit_all(bank: Bank, splits: Sequence[Split], progress: ProgressCallback) -> dict[str, FloatArray]:
    """Fit without each fold; arrays by name and number of the fold."""
    spec = spec_of(bank.calibration)
    spec = replace(spec, tolerance=max(TOLERANCE, spec.tolerance))
    parts = [(bank.responses, bank.targets, spec, split.train) for split in splits]
    arrays = {}
    for number, fitted in parts_with_progress(_fit, parts, progress, "fitting without models"):
        arrays.update({f"{name}_{number}": array for name, array in fitted.items()})
    progress("fitting without some models", 1.0)
    return arrays


def _fit(
    responses: ResponseMatrix, targets: ScoreTargets, spec: CalibrationSpec, rows: IntArray, progress: ProgressCallback
) -> dict[str, FloatArray]:
    """Fit the items to the models at these rows; items that none of them answered get the mean of the others.

    Models whose items were chosen by their own answers are left out, as in every calibration of items.
    """
    seen = responses.take(models=rows).observed
    seen[is_adaptive(responses.models)[rows]] = False
    usable, answers_any = np.flatnonzero(seen.any(axis=0)), seen.any(axis=1)
    if np.sum(answers_any) < MINIMUM_MODELS:
        raise DataError("too few models with responses are left.")
    answered = rows[answers_any]
    with without_repeated_warnings():
        fitted = calibrate(responses.take(models=answered, items=usable), spec, progress=progress)
    coefficients = np.column_stack([fitted.parameters.loadings, fitted.parameters.intercept])
    whole = np.tile(coefficients.mean(axis=0), (responses.n_items, 1))
    whole[usable] = coefficients
    is_degenerate = np.ones(responses.n_items)
    is_degenerate[usable] = fitted.is_degenerate
    precision = {}
    if fitted.parameters.precision is not None:
        precision["precision"] = np.full(responses.n_items, np.exp(np.log(fitted.parameters.precision).mean()))
        precision["precision"][usable] = fitted.parameters.precision
    steps = {}
    if fitted.parameters.steps is not None:
        places = fitted.parameters.steps.places
        steps["places"] = np.tile(places[0], (responses.n_items, 1))  # of items that nobody is left for
        steps["places"][usable] = places
        steps["levels"] = fitted.parameters.steps.levels
    abilities = np.tile(fitted.prior.mean, (rows.size, 1))
    abilities[answers_any] = fitted.abilities
    return {
        "coefficients": whole,
        "is_degenerate": is_degenerate,
        "abilities": abilities,
        "prior_mean": fitted.prior.mean,
        "prior_covariance": fitted.prior.covariance,
        "thresholds": np.array([fitted.thresholds.get(name, np.nan) for name in targets.scenarios]),
        **precision,
        **steps,
    }


def _is_whole(arrays: dict[str, FloatArray], bank: Bank, splits: Sequence[Split]) -> bool:
    """Whether arrays from a file are those of these folds."""
    n_dims = bank.calibration.n_dims
    return all(
        arrays.get(f"coefficients_{number}", np.empty(0)).shape == (bank.n_items, n_dims + 1)
        and arrays.get(f"abilities_{number}", np.empty(0)).shape == (split.train.size, n_dims)
        and {f"{name}_{number}" for name in _names(bank)} <= set(arrays)
        for number, split in enumerate(splits)
    ) and all(np.isfinite(array).all() for name, array in arrays.items() if not name.startswith(MAY_BE_INFINITE))


def _names(bank: Bank) -> set[str]:
    """Names of the other arrays of a fold."""
    names = {"is_degenerate", "prior_mean", "prior_covariance", "thresholds"}
    if bank.parameters.steps is not None:
        names |= {"places", "levels"}
    return names if bank.parameters.precision is None else names | {"precision"}


def _cache(bank: Bank, split: Split) -> BankCache:
    """Return the cache of the bank of a split's models, whose factors are slower to fit than its items."""
    return bank.cache.of_part(cache_name("fold", split.train))


def _itself(bank: Bank) -> Bank:
    return bank


def _fold_bank(bank: Bank, rows: IntArray, arrays: dict[str, FloatArray], number: int, cache: BankCache) -> Bank:
    """Put together the bank of the models at these rows."""
    fitted = {name.rpartition("_")[0]: array for name, array in arrays.items() if name.endswith(f"_{number}")}
    responses = bank.responses.take(models=rows)
    fold_bank = Bank(
        bank_id=f"{bank.bank_id}/{number}",
        responses=responses,
        calibration=_fold_calibration(bank, fitted),
        targets=bank.targets,
        item_model_bias=bank.item_model_bias,
        response_variance=response_variance(responses, bank.targets),
    )
    fold_bank.cache.share(cache)
    return fold_bank


def _fold_calibration(bank: Bank, fitted: dict[str, FloatArray]) -> Calibration:
    whole = bank.calibration
    coefficients, n_dims = fitted["coefficients"], whole.n_dims
    lower = known_lower_asymptote(bank.responses.items) if _guesses(bank) else np.zeros(bank.n_items)
    is_degenerate: BoolArray = fitted["is_degenerate"] > 0.0
    thresholds = {
        name: float(value)
        for name, value in zip(bank.targets.scenarios, fitted["thresholds"], strict=True)
        if not np.isnan(value)
    }
    return replace(
        whole,
        parameters=ItemParameters.create(
            coefficients[:, :-1],
            coefficients[:, -1],
            lower,
            family=whole.parameters.family,
            precision=fitted.get("precision"),
            steps=None if whole.parameters.steps is None else Steps(fitted["levels"], fitted["places"]),
        ),
        # not kept: nothing that is done with a fold needs them
        item_covariance=np.broadcast_to(np.nan, (bank.n_items, n_dims + 1, n_dims + 1)),
        ability_covariance=np.broadcast_to(np.nan, (fitted["abilities"].shape[0], n_dims, n_dims)),
        abilities=fitted["abilities"],
        prior=AbilityPrior(fitted["prior_mean"], fitted["prior_covariance"]),
        is_degenerate=is_degenerate,
        thresholds=thresholds,
        message="",
        history=np.empty(0),
        log_precision_error=None,
    )


def _guesses(bank: Bank) -> bool:
    return bool(np.any(bank.parameters.lower_asymptote > 0.0))
