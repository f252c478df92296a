"""The verb `transfer`: what the ability from some items says of others (IRSL 4.2, 4.3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.errors import DataError, DataWarning, ParameterError, remedy, warn, warned_once
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.progress import ProgressCallback, silent
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular
from itembank_scaling.compute import TrainingCompute
from itembank_scaling.pass_at_k.samples import sample_counts
from itembank_scaling.scenario_fits import fit_items, responses_and_spec
from itembank_scaling.transfers.convergent import correlate_abilities, log_flops_of
from itembank_scaling.transfers.correlations import WithInterval
from itembank_scaling.transfers.curves import MINIMUM_MODELS, actual_curves
from itembank_scaling.transfers.transfer_methods import (
    ItemSets,
    Part,
    TransferData,
    bank_part,
    check_answers,
    folds,
    item_sets,
    named_part,
    score_items,
)
from itembank_scaling.transfers.transfer_specs import METHODS, TransferSpec

Scored: TypeAlias = tuple[FloatArray, FloatArray]
"""Abilities and their standard errors, (n_models,) each."""


def check_validity(validity: dict[str, Any], sets: ItemSets, spec: TransferSpec) -> None:
    """Refuse a transfer between abilities that are not shown to be correlated."""
    if validity["lower"] > 0.0:
        return
    text = (
        f"abilities on {sets.source_name!r} and {sets.target_name!r} must be correlated for a transfer, got "
        f"{validity['correlation']:.2f} ({100.0 * spec.level:g} % interval {validity['lower']:.2f} to "
        f"{validity['upper']:.2f}, {validity['n_models']} past models)."
    )
    if not spec.is_forced:
        how = remedy("TransferSpec(is_forced=True)", "is_forced = true in the file of --spec")
        raise DataError(
            f"{text} They may measure different things, or models are too few to tell. To see it anyway: {how}."
        )
    warn(f"{text} The transfer was forced.", DataWarning)


def _scored(part: Part, columns: IntArray, name: str, item_model: CalibrationSpec) -> tuple[Scored, Scored]:
    """Fit some items on the past models, and score these and those asked in the same way."""
    try:
        fit = fit_items(name, part.calibration, columns, item_model)
    except DataError as error:
        raise DataError(f"items of {name!r}: {error}") from error
    if fit.calibration.thresholds:
        raise ParameterError(
            "a transfer predicts mean responses, so its item model must be of the responses as they are; this one "
            "makes them right or wrong by a threshold. Take the family 'beta' or 'binomial'."
        )
    return score_items(fit, part.calibration), score_items(fit, part.asked)


@dataclass(frozen=True, slots=True, repr=False)
class Transfer(Tabular):
    """Target scores, or pass@k curves, predicted from the ability that other items give.

    Attributes
    ----------
    source, target : str
        Scenarios, or 'NAME (easy)' and 'NAME (hard)'.
    model_ids : tuple of n_models ids
        The models that were asked; none of them calibrated the items of its own prediction.
    groups : tuple of n_models names or None
        Recipes or families.
    flops : (n_models,) or None
        Training compute.
    n_source_items, n_target_items : int
    k : tuple of n_k numbers
        Samples an item; 1 is the mean score.
    theta, standard_errors : (n_models,)
        From the source's items alone, on the scale of the past models of that model's part.
    actual : (n_models, n_k)
        NaN where a model did not answer the target, or has fewer than k samples of an item.
    uninformed : (n_models, n_k)
        The mean of the past models.
    predictions : mapping of method to WithInterval
        The first is the prediction, the others are shown beside it.
    validity : table of one row a part of the models
        Convergent validity on the past models of the part, found before anything was predicted: `correlation` of the
        abilities that source and target give, `lower`, `upper`; `disattenuated`, of the abilities themselves, without
        the errors of their estimates; `source_reliability`, `target_reliability`, `n_models`.
    level : float
    notes : tuple of str
        What was warned of: abilities that are no skill, a weak correlation, ...
    """

    schema = "transfer"

    source: str
    target: str
    model_ids: tuple[str, ...]
    groups: tuple[str, ...] | None
    flops: FloatArray | None
    n_source_items: int
    n_target_items: int
    k: tuple[int, ...]
    theta: FloatArray
    standard_errors: FloatArray
    actual: FloatArray
    uninformed: FloatArray
    predictions: Mapping[str, WithInterval]
    validity: pl.DataFrame
    level: float
    notes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The method whose prediction this is."""
        return next(iter(self.predictions))

    @property
    def prediction(self) -> WithInterval:
        """Predicted curves."""
        return self.predictions[self.method]

    @property
    def correlation(self) -> float:
        """Correlation of the abilities of source and target, the mean over parts."""
        return float(np.mean(self.validity["correlation"].to_numpy()))

    @property
    def disattenuated(self) -> float:
        """What the correlation would be without errors of the abilities, the mean over parts."""
        return _mean(self.validity["disattenuated"].to_numpy())

    @property
    def reliabilities(self) -> tuple[float, float]:
        """Reliability of the abilities on source and target, the mean over parts."""
        source, target = np.mean(self.validity.select("source_reliability", "target_reliability").to_numpy(), axis=0)
        return float(source), float(target)

    @property
    def errors(self) -> FloatArray:
        """``|predicted - actual|`` of the prediction, (n_models, n_k)."""
        return np.abs(self.prediction.value - self.actual)

    def method_rows(self) -> list[dict[str, Any]]:
        """One record a method, with that of no response at all last."""
        rows = [self._method_row(name, prediction) for name, prediction in self.predictions.items()]
        none = np.full(self.actual.shape, np.nan)
        return [*rows, self._method_row("uninformed", WithInterval(self.uninformed, none, none))]

    @property
    def table(self) -> pl.DataFrame:
        """One row for each model and k."""
        i, j = (place.ravel() for place in np.indices(self.actual.shape))
        columns: dict[str, Any] = {"model_id": [self.model_ids[model] for model in i]}
        if self.groups is not None:
            columns["group"] = [self.groups[model] for model in i]
        if self.flops is not None:
            columns["flops"] = self.flops[i]
        columns |= {
            "ability": self.theta[i],
            "standard_error": self.standard_errors[i],
            "k": [self.k[place] for place in j],
            "predicted": self.prediction.value[i, j],
            "lower": self.prediction.lower[i, j],
            "upper": self.prediction.upper[i, j],
            "actual": self.actual[i, j],
        }
        others = {name: one for name, one in self.predictions.items() if name != self.method}
        return pl.DataFrame(columns | {f"predicted_{name}": one.value[i, j] for name, one in others.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows; the validity comes first."""
        return {
            "source": self.source,
            "target": self.target,
            "correlation": self.correlation,
            "correlation_lower": _mean(self.validity["lower"].to_numpy()),
            "correlation_upper": _mean(self.validity["upper"].to_numpy()),
            "disattenuated": self.disattenuated,
            "source_reliability": self.reliabilities[0],
            "target_reliability": self.reliabilities[1],
            "n_calibration_models": self.validity["n_models"].min(),
            "n_models": len(self.model_ids),
            "n_source_items": self.n_source_items,
            "n_target_items": self.n_target_items,
            "method": self.method,
            "level": self.level,
            "notes": list(self.notes),
        }

    def _method_row(self, name: str, prediction: WithInterval) -> dict[str, Any]:
        error = prediction.value - self.actual
        inside = (self.actual >= prediction.lower) & (self.actual <= prediction.upper)
        known = np.isfinite(self.actual) & np.isfinite(prediction.lower)
        # the standard error of the mean error is over groups where there are any, else over models
        by_model = mean_where_known(np.abs(error), axis=1)
        names = np.asarray(self.model_ids if self.groups is None else self.groups)
        means = np.array([_mean(by_model[names == one]) for one in dict.fromkeys(names.tolist())])
        means = means[np.isfinite(means)]
        row: dict[str, Any] = {
            "method": name,
            "error": _mean(np.abs(error)),
            "error_standard_error": float(means.std(ddof=1) / np.sqrt(means.size)) if means.size > 1 else float("nan"),
            "bias": _mean(error),
            "correlation": _correlation(prediction.value[:, 0], self.actual[:, 0]),
            "coverage": float(inside[known].mean()) if known.any() else float("nan"),
            "half_width": 0.5 * _mean(prediction.upper - prediction.lower),
        }
        if len(self.k) > 1:
            row["log_error"] = _mean(np.abs(_minus_log(prediction.value) - _minus_log(self.actual)))
        return row


def _minus_log(values: FloatArray) -> FloatArray:
    """``-log`` of positive values, NaN for others."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0.0, -np.log(values), np.nan)


def _mean(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def _correlation(x: FloatArray, y: FloatArray) -> float:
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3 or x[known].std() == 0.0 or y[known].std() == 0.0:
        return float("nan")
    return float(np.corrcoef(x[known], y[known])[0, 1])


def transfer_part(
    part: Part, sets: ItemSets, spec: TransferSpec, item_model: CalibrationSpec, rng: np.random.Generator
) -> Transfer:
    """Calibrate, check the convergent validity, and only then predict."""
    source, (theta, standard_errors) = _scored(part, sets.source, sets.source_name, item_model)
    target, _ = _scored(part, sets.target, sets.target_name, item_model)
    found = correlate_abilities(
        np.column_stack([source[0], target[0]]),
        np.column_stack([source[1], target[1]]),
        scenarios=(sets.source_name, sets.target_name),
        model_ids=tuple(part.calibration.model_ids),
        level=spec.level,
        groups=part.calibration_groups,
        rng=rng,
    )
    validity = {
        "correlation": found.observed.value[0, 1],
        "lower": found.observed.lower[0, 1],
        "upper": found.observed.upper[0, 1],
        "disattenuated": found.disattenuated.value[0, 1],
        "source_reliability": found.reliability[0],
        "target_reliability": found.reliability[1],
        "n_models": found.n_models_of_pair[0, 1],
    }
    check_validity(validity, sets, spec)
    actual = actual_curves(part.asked, sets.target, spec.k)
    data = TransferData(part, sets, spec, item_model)
    return Transfer(
        source=sets.source_name,
        target=sets.target_name,
        model_ids=tuple(part.asked.model_ids),
        groups=None,
        flops=None,
        n_source_items=sets.source.size,
        n_target_items=sets.target.size,
        k=spec.k,
        theta=theta,
        standard_errors=standard_errors,
        actual=actual,
        uninformed=np.broadcast_to(mean_where_known(data.past), actual.shape),
        predictions={name: resolve_name(METHODS[name])(data) for name in spec.methods},
        validity=pl.DataFrame([validity]),
        level=spec.level,
    )


@one_blas_thread()
def transfer(
    responses: ResponseMatrix,
    source: str,
    target: str | None = None,
    *,
    spec: TransferSpec | None = None,
    calibration: Bank | Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    compute: TrainingCompute | None = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> Transfer:
    """Predict the scores of models on a target from the ability that the items of a source give.

    The convergent validity of both, on the past models alone, is found first; without any sign of it the
    transfer is refused, and a weak one is warned of.

    Parameters
    ----------
    responses : ResponseMatrix
        Of the models asked about; of a model's answers to the target nothing is used but to compare at the end.
    source : str
        A scenario.
    target : str, optional
        Another scenario; without it, the source's easy items predict its hard ones. What is easy is seen from the
        past models only.
    spec : TransferSpec, optional
    calibration : Bank or sequence of model ids, optional
        Past models that both sets of items are calibrated on: those of a bank, or some of the responses. By default
        the models are cross-validated: each part is predicted from the others.
    groups : sequence of n_models names, optional
        Relatives among the models, which are left out together. By default the recipes of `compute`.
    compute : TrainingCompute, optional
        Puts training compute beside each prediction.
    rng : Generator, int or None
        Divides the models.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When the abilities are not shown to be correlated; for a scenario that does not exist; for too few models.
    ParameterError
        For a choice that cannot be; for k above 1 without repeated samples.

    Examples
    --------
    >>> found = transfer(load_builtin("classifiers"), "digits", "wine")  # doctest: +SKIP
    >>> found.correlation, found.method_rows()  # doctest: +SKIP
    """
    spec = spec or TransferSpec()
    rng = as_generator(rng)
    past = calibration.responses if isinstance(calibration, Bank) else responses
    if max(spec.k) > 1 and past.n_trials is None:
        raise ParameterError(f"k must be 1 without repeated samples, got {max(spec.k)}. Give counts of samples.")
    if max(spec.k) > 1:
        sample_counts(past)  # means of graded samples have no pass@k
    if groups is None and compute is not None and compute.recipe is not None:
        groups = _recipe_groups(responses, compute, are_left_out=calibration is None)
    if groups is not None and len(groups) != responses.n_models:
        raise ParameterError(f"groups must name one group a model, got {len(groups)} for {responses.n_models} models.")
    _, item_model = responses_and_spec(past, spec.item_model)
    if isinstance(calibration, Bank):
        parts = bank_part(calibration.responses, responses)
    elif calibration is not None:
        parts = named_part(responses, calibration, groups)
    else:
        parts = folds(responses, groups, spec.n_folds, rng)
    results: list[Transfer] = []
    places: list[IntArray] = []
    with warned_once() as told:
        for part in parts:
            progress(f"part {len(results) + 1}", 0.0)
            sets = item_sets(part, source, target, spec.easy_fraction)
            check_answers(part, sets)
            results.append(transfer_part(part, sets, spec, item_model, rng))
            places.append(part.places)
    progress("done", 1.0)
    asked = np.concatenate(places)
    packed = _together(results, asked)
    if packed.correlation < spec.warn_below:
        told.append(weak_validity(packed, spec.warn_below))
        warn(told[-1], DataWarning)
    empty = np.asarray(spec.k)[np.isnan(packed.prediction.value).all(axis=0)]
    if empty.size:
        told.append(
            f"{packed.method!r} predicts no pass@k of {packed.target!r} at k = {', '.join(map(str, empty))}: its line "
            f"needs {MINIMUM_MODELS} past models with so many samples of every item. Take smaller k, or method "
            "'common-scale', which needs no line."
        )
        warn(told[-1], DataWarning)
    return replace(
        packed,
        groups=None if groups is None else tuple(str(groups[row]) for row in np.sort(asked).tolist()),
        flops=None if compute is None else 10.0 ** log_flops_of(compute, packed.model_ids),
        notes=tuple(told),
    )


def _recipe_groups(responses: ResponseMatrix, compute: TrainingCompute, *, are_left_out: bool) -> list[str] | None:
    """Recipes as groups; none where they are cross-validated and all one, which leaves nobody to calibrate."""
    known = dict(zip(compute.model_ids, compute.recipe or (), strict=True))
    groups = [known[name] for name in responses.model_ids]
    if len(set(groups)) > 1 or not are_left_out:
        return groups
    warn(
        f"all models are of one recipe, {groups[0]!r}, and count as if unrelated. Where several are checkpoints of one "
        "run, name a column that tells runs or sizes apart as groups (--clusters).",
        DataWarning,
    )
    return None


def weak_validity(found: Transfer, warn_below: float) -> str:
    """Say what a weak correlation leaves open, and tell a poor measure from one of something else."""
    names = (found.source, found.target)
    weaker, reliability = min(zip(names, found.reliabilities, strict=True), key=lambda pair: pair[1])
    why = (
        "they measure different things"
        if found.disattenuated < warn_below
        else f"they may measure much the same, but {weaker!r} measures it poorly (reliability {reliability:.2f})"
    )
    return (
        f"abilities on {found.source!r} and {found.target!r} correlate only {found.correlation:.2f}: {why}. Intervals "
        "are therefore wide."
    )


def _together(parts: Sequence[Transfer], places: IntArray) -> Transfer:
    """Put the transfers of parts of the models together, by their places, (n_models,), in the responses."""
    order = np.argsort(places)

    def joined(arrays: Iterable[FloatArray]) -> FloatArray:
        return np.concatenate(list(arrays))[order]

    ends = ("value", "lower", "upper")
    ids = [name for one in parts for name in one.model_ids]
    return replace(
        parts[0],
        model_ids=tuple(ids[place] for place in order.tolist()),
        predictions={
            method: WithInterval(*(joined(getattr(one.predictions[method], end) for one in parts) for end in ends))
            for method in parts[0].predictions
        },
        validity=pl.concat([one.validity for one in parts]),
        theta=joined(one.theta for one in parts),
        standard_errors=joined(one.standard_errors for one in parts),
        actual=joined(one.actual for one in parts),
        uninformed=joined(one.uninformed for one in parts),
    )
