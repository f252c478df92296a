"""Banks calibrated without some of the past models, and trials of methods on these models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from itembank.bank.bank_cache import BankCache, cache_name
from itembank.bank.banks import CONTENT_ORDER, Bank, Calibration
from itembank.bank.known_scores import ENOUGH
from itembank.bank.marks import is_adaptive
from itembank.calibration.calibration_specs import METHODS, CalibrationSpec, ItemModel
from itembank.calibration.families import without_repeated_warnings
from itembank.calibration.fit_item_model import MINIMUM_MODELS, fit_item_model, known_lower_asymptote
from itembank.calibration.item_model_bias import response_variance
from itembank.errors import DataError, IntegrityError, ParameterError
from itembank.irt.parameters import AbilityPrior, ItemParameters
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import parts_with_progress
from itembank.numerics.splits import Split, dealt_out, splits_of
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import order_by_answers
from itembank.responses.targets import ScoreTargets

MINIMUM_FOR_FOLDS = ENOUGH
"""With fewer past models whose scores are known neither the models of a fold nor those that remain are enough to
learn from."""
MANY_MODELS = 100
N_FOLDS_MANY, N_FOLDS_FEW = 5, 10
"""With few models a fit is cheap and each model of a fold matters more: more, smaller folds."""
TOLERANCE = 1e-5
"""Tolerance of the fits, ten times the default: it changes predictions by far less than leaving models out does.

Folds of a bank that was fitted with a larger tolerance take that tolerance."""
SEED = 20
MAY_BE_INFINITE = ("thresholds_", "places_")
"""Beginnings of the names of arrays of a fold that need not be finite."""


@dataclass(frozen=True)
class Fold:
    """Some past models, and a bank that has not seen them."""

    number: int  # From 0
    held_out: IntArray  # (n_held_out,): Rows of the whole bank's responses
    seen: IntArray  # (n_seen,): Those that it was fitted to
    # Puts the bank together: that takes a copy of the responses, which what was tried before does not need.
    make_bank: Callable[[], Bank]

    @cached_property
    def bank(self) -> Bank:
        """Bank of the other models; same items in the same order, same targets."""
        return self.make_bank()

    def __reduce__(self) -> tuple[type["Fold"], tuple[int, IntArray, IntArray, Callable[[], Bank]]]:
        """Send the bank itself to other processes, without what it is made of."""
        return Fold, (self.number, self.held_out, self.seen, partial(_itself, self.bank))


def folds(bank: Bank, *, progress: ProgressCallback = silent) -> tuple[Fold, ...]:
    """Calibrate the bank's items anew without each tenth (with 100 models or more: fifth) of its models.

    Only models with a known score (`Bank.known_scores`) are left out, since the others cannot tell an error: these
    take part in every fit, as they do in the bank's. Of models that answer alike one is left out and tried
    (`Bank.distinct_models`); the others are neither tried nor in the fit without it. The item model, its number of
    dimensions and gp-IRT's b stay those of the whole bank. The parameters are kept in the bank's cache, so that this
    takes time once.

    Empty with fewer than ten models to try, or where a fit without some of them is impossible.
    """
    return bank.cache.remember("folds", lambda: _make_folds(bank, progress))


def fold_numbers(bank: Bank) -> IntArray:
    """Return the number of the fold that leaves each past model out, (n_models,); -1 where none does."""
    result = np.full(bank.n_models, -1, dtype=np.int64)
    for fold in folds(bank):
        result[fold.held_out] = fold.number
    return result


def spec_of(calibration: Calibration) -> CalibrationSpec:
    """Return the spec that a calibration was made with, as far as the fit depends on it."""
    default = METHODS.kinds[calibration.method]()
    try:
        names = {field.name for field in fields(default)} - {"family"}  # the parameters say what 'auto' came to
        options: dict[str, Any] = {name: value for name, value in calibration.options.items() if name in names}
        return replace(
            default,
            item_model=cast("ItemModel", calibration.item_model),
            n_dims=calibration.n_dims,
            known_guessing=bool(np.any(calibration.parameters.lower_asymptote > 0.0)),
            family=calibration.parameters.family,
            tolerance=default.tolerance if calibration.tolerance is None else calibration.tolerance,
            **options,
        )
    except (ParameterError, TypeError) as error:
        raise IntegrityError(
            f"the bank records a calibration that cannot be: {error} Calibrate the bank again."
        ) from error


def _make_folds(bank: Bank, progress: ProgressCallback) -> tuple[Fold, ...]:
    if bank.distinct_models.size < MINIMUM_FOR_FOLDS:
        return ()
    # dealt out in order of their scores; siblings of the models to try are neither tried nor trained on
    tried, group = bank.distinct_models, bank.siblings
    n_folds = N_FOLDS_MANY if tried.size >= MANY_MODELS else N_FOLDS_FEW
    ascending = order_by_answers(bank.responses, tried, bank.content_order)
    fold = np.full(bank.n_models, -1, dtype=np.int64)
    fold[group[tried]] = dealt_out(ascending, n_folds, np.random.default_rng(SEED))
    splits = [Split(split.train, np.intersect1d(split.test, tried)) for split in splits_of(fold[group])]
    try:
        arrays = bank.cache.arrays(
            "folds", lambda: _fit_all(bank, splits, progress), fits=lambda found: _is_whole(found, bank, splits)
        )
    except DataError:  # without some models the rest may leave no item that tells them apart
        return ()
    without_cache = replace(bank)  # folds lie in the cache: with it they would hold themselves
    made = []
    for number, split in enumerate(splits):
        cache = bank.cache.of_part(cache_name("fold", split.train))
        cache.remember(CONTENT_ORDER, partial(bank.content_order.of_models, split.train))
        make_bank = partial(_fold_bank, without_cache, split.train, arrays, number, cache)
        made.append(Fold(number, split.test, split.train, make_bank))
    return tuple(made)


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
        fitted = fit_item_model(responses.take(models=answered, items=usable), spec, progress=progress)
    coefficients = np.column_stack([fitted.parameters.loadings, fitted.parameters.intercept])
    whole = np.tile(coefficients.mean(axis=0), (responses.n_items, 1))
    whole[usable] = coefficients
    is_degenerate = np.ones(responses.n_items)
    is_degenerate[usable] = fitted.is_degenerate
    precision = {}
    if fitted.parameters.precision is not None:
        precision["precision"] = np.full(responses.n_items, np.exp(np.log(fitted.parameters.precision).mean()))
        precision["precision"][usable] = fitted.parameters.precision
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
    }


def _is_whole(arrays: dict[str, FloatArray], bank: Bank, splits: Sequence[Split]) -> bool:
    n_dims, names = bank.calibration.n_dims, {"is_degenerate", "prior_mean", "prior_covariance", "thresholds"}
    names |= set() if bank.parameters.precision is None else {"precision"}
    return all(
        arrays.get(f"coefficients_{number}", np.empty(0)).shape == (bank.n_items, n_dims + 1)
        and arrays.get(f"abilities_{number}", np.empty(0)).shape == (split.train.size, n_dims)
        and {f"{name}_{number}" for name in names} <= set(arrays)
        for number, split in enumerate(splits)
    ) and all(np.isfinite(array).all() for name, array in arrays.items() if not name.startswith(MAY_BE_INFINITE))


def _itself(bank: Bank) -> Bank:
    return bank


def _fold_bank(bank: Bank, rows: IntArray, arrays: dict[str, FloatArray], number: int, cache: BankCache) -> Bank:
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
    guesses = np.any(bank.parameters.lower_asymptote > 0.0)
    lower = known_lower_asymptote(bank.responses.items) if guesses else np.zeros(bank.n_items)
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


FRACTION_OF_FITS = 0.5
"""Part of the progress bar for fitting without some models, where that was not done before."""


def run_trial(
    bank: Bank,
    name: str,  # The bank's cache keeps the result under it: made by `cache_name` of all that the result depends on
    # Given a fold, and a callback for its progress, returns an array (..., n_held_out, n_targets)
    try_fold: Callable[[Fold, ProgressCallback], FloatArray],
    shape: tuple[int, ...],  # Of the result: (..., n_models, n_targets)
    *,
    progress: ProgressCallback = silent,
) -> FloatArray:
    """Apply a method to the models that each fold leaves out, as the whole bank will apply it to new models.

    Returns (..., n_models, n_targets): The result for each model from the fold that left it out.
    """

    def try_all() -> dict[str, FloatArray]:
        result = np.full(shape, np.nan)
        parts = folds(bank, progress=part_of(progress, 0.0, FRACTION_OF_FITS))
        own_progress = part_of(progress, FRACTION_OF_FITS, 1.0)
        for number, found in parts_with_progress(
            try_fold, [(fold,) for fold in parts], own_progress, elsewhere="cross-validating"
        ):
            result[..., parts[number].held_out, :] = found
        return {"found": result}

    def fits(arrays: dict[str, FloatArray]) -> bool:
        return "found" in arrays and arrays["found"].shape == shape

    return bank.cache.arrays(name, try_all, fits=fits)["found"]
