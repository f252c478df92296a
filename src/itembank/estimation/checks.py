"""What the choices of `estimate` must be, and which of them do not go together."""

from collections.abc import Sequence
from typing import get_args

import numpy as np

from itembank.bank.banks import Bank
from itembank.checks import check_fraction, check_one_of
from itembank.errors import DataError, DataWarning, ParameterError, warn
from itembank.estimation.automatic import too_few
from itembank.estimation.estimand_names import RUN
from itembank.estimation.estimator_specs import METHODS, Auto, EstimationSpec, IntervalKind, Stacked
from itembank.estimation.folds import folds
from itembank.progress import ProgressCallback


def check_interval(level: float, interval: str, spec: EstimationSpec) -> None:
    """Refuse a level outside (0, 1), another interval, and a method beside design-based intervals."""
    check_fraction("level", level)
    check_one_of("interval", interval, get_args(IntervalKind))
    if interval == "design" and not isinstance(spec, Auto):
        raise ParameterError(
            f"design-based intervals bring their own estimate, got method {METHODS.name_of(spec)!r}. Leave the method "
            "at 'auto', or take another interval."
        )


def check_item_model(bank: Bank, spec: EstimationSpec, interval: str) -> None:
    """Raise `DataError` where an item model is asked of a bank that was begun without one."""
    if not isinstance(spec, Auto):
        bank.check_item_model(f"Method {METHODS.name_of(spec)!r} needs")
    if interval == "model-based":
        bank.check_item_model("A model-based interval needs")


def check_headline(
    bank: Bank, interval: str, estimand: str, covariates: Sequence[str], progress: ProgressCallback
) -> None:
    """Refuse what a headline score does not go with: it rests on past models' errors alone."""
    name = bank.targets.last
    for word, value, only in (("interval", interval, "calibrated"), ("estimand", estimand, RUN)):
        if value != only:
            raise ParameterError(f"the score {name!r} goes with {word} {only!r} alone, got {value!r}. Leave it out.")
    if covariates:
        raise ParameterError(f"covariates forecast the scores of items, not {name!r}: leave them out.")
    if not folds(bank, progress=progress):
        raise DataError(
            f"the score {name!r} needs past models that can be left out in turn, since their errors give its "
            f"intervals: {too_few(bank)}. Add models to the bank."
        )


def check_covariates(covariates: Sequence[str], spec: EstimationSpec, interval: str) -> None:
    """Refuse covariates that are no names, or that the method or the interval does not take."""
    if isinstance(covariates, str):
        raise ParameterError(f"covariates must be column names in a sequence, got the text {covariates!r}.")
    if covariates and not isinstance(spec, Auto | Stacked):
        raise ParameterError(
            f"covariates are weighed with the methods of 'stacked', got method {METHODS.name_of(spec)!r}. Leave the "
            "method at 'auto', or leave the covariates out."
        )
    if covariates and interval != "calibrated":
        raise ParameterError(f"covariates need calibrated intervals, got {interval!r}. Leave the interval as it is.")


def warn_of_unequal_weights(bank: Bank) -> None:
    """Warn where the plain mean of a sample, which estimates the micro score, is asked for another."""
    sizes = bank.targets.scenario_sizes[bank.targets.scenario_index]
    if not np.allclose(bank.targets.weights * sizes, 1.0):
        warn(
            "the plain mean estimates scores in which all items weigh the same, but those of this bank do not "
            f"(within = {bank.targets.within!r}): take method 'weighted'.",
            DataWarning,
        )
