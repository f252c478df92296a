"""The verb `convergent_validity`: how far scenarios measure the same ability, by correlations over models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from itembank.bank.banks import Bank
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.checks import check_fraction
from itembank.errors import DataError, ParameterError, shown
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.random import as_generator
from itembank.numerics.ties import rounded
from itembank.progress import ProgressCallback, silent
from itembank.responses.content_order import numbered_groups
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular
from itembank_scaling.scenario_fits import fit_scenarios, responses_and_spec
from itembank_scaling.transfers import correlations as kernel
from itembank_scaling.transfers.correlations import WithInterval

if TYPE_CHECKING:
    from itembank_scaling.compute import TrainingCompute


@dataclass(frozen=True, slots=True, repr=False)
class ConvergentValidity(Tabular):
    """Correlations over models of the abilities that each scenario's own items give (IRSL App. D).

    Attributes
    ----------
    scenarios : tuple of n_scenarios names
    model_ids : tuple of n_models ids
    theta, standard_errors : (n_models, n_scenarios)
        NaN where a model answered none of a scenario's items.
    reliability : (n_scenarios,)
        Share of the variance of ability that is not error of its estimate.
    observed : WithInterval
        Of the estimated abilities.
    disattenuated : WithInterval
        Divided by the root of the reliabilities (Spearman 1904), at most 1: of the abilities themselves. NaN where
        a reliability is below 0.2.
    beyond_compute : WithInterval or None
        Of what is left of the abilities when their line in log FLOP is taken out; None if FLOP is not given.
    n_models_of_pair : (n_scenarios, n_scenarios)
        Models that answered both.
    order : (n_scenarios,)
        Scenarios put beside those they correlate with (average linkage), for figures.
    level : float
    interval : str
        'fisher' (Fisher's z) or 'bootstrap' (groups of models drawn anew).
    n_groups : int or None
        Groups of models that the bootstrap drew.
    message : str
    """

    scenarios: tuple[str, ...]
    model_ids: tuple[str, ...]
    theta: FloatArray
    standard_errors: FloatArray
    reliability: FloatArray
    observed: WithInterval
    disattenuated: WithInterval
    beyond_compute: WithInterval | None
    n_models_of_pair: IntArray
    order: IntArray
    level: float
    interval: str
    n_groups: int | None
    message: str

    @property
    def table(self) -> pl.DataFrame:
        """One row a pair of scenarios, the highest correlation first."""
        i, j = np.triu_indices(len(self.scenarios), k=1)
        columns: dict[str, Any] = {
            "first": [self.scenarios[one] for one in i],
            "second": [self.scenarios[one] for one in j],
            "n_models": self.n_models_of_pair[i, j],
        }
        tables = {"": self.observed, "disattenuated": self.disattenuated, "beyond_compute": self.beyond_compute}
        for name, one in tables.items():
            if one is not None:
                columns[name or "correlation"] = one.value[i, j]
                prefix = f"{name}_" if name else ""
                columns |= {f"{prefix}lower": one.lower[i, j], f"{prefix}upper": one.upper[i, j]}
        order = np.argsort(-np.nan_to_num(columns["correlation"], nan=-2.0), kind="stable")
        return pl.DataFrame(columns)[order]

    def to_dict(self) -> dict[str, Any]:
        """Return what is true of all pairs together."""
        off = self.observed.value[np.triu_indices(len(self.scenarios), k=1)]
        return {
            "n_models": len(self.model_ids),
            "n_scenarios": len(self.scenarios),
            "median_correlation": float(np.nanmedian(off)) if np.isfinite(off).any() else None,
            "lowest_correlation": float(np.nanmin(off)) if np.isfinite(off).any() else None,
            "reliability": dict(zip(self.scenarios, self.reliability.tolist(), strict=True)),
            "interval": self.interval,
            "level": self.level,
            "n_groups": self.n_groups,
            "message": self.message,
        }


MINIMUM_MODELS = 4
"""Fisher's z has no interval for fewer."""


@one_blas_thread()
def convergent_validity(
    source: Bank | ResponseMatrix,
    *,
    spec: CalibrationSpec | None = None,
    level: float = 0.95,
    groups: Sequence[str] | None = None,
    compute: "TrainingCompute | None" = None,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> ConvergentValidity:
    """Correlate, over models, the abilities that each scenario's own items give (IRSL App. D, Figs 21-23).

    Every scenario is calibrated by itself, so that no scenario's ability owes anything to another's responses.

    Parameters
    ----------
    source : Bank or ResponseMatrix
        Of a bank, its calibration responses.
    spec : CalibrationSpec, optional
        An item model with one dimension. By default '2pl', with the family that the responses are of.
    level : float
        Of the intervals.
    groups : sequence of n_models names, optional
        Models that are relatives: checkpoints of one run, recipes, families. Intervals are then by drawing whole groups
        anew, else by Fisher's z.
    compute : TrainingCompute, optional
        Adds the correlation of what is left when each ability's line in log FLOP is taken out. Anything that grows
        with compute is correlated; only the rest tells that two scenarios order models of one compute alike.
    rng : Generator, int or None
        Draws of the bootstrap.
    progress : ProgressCallback

    Raises
    ------
    DataError
        With fewer than four models or two scenarios that can be fitted.
    ParameterError
        For an item model of more dimensions, another number of groups than models, or a level outside (0, 1).

    Examples
    --------
    >>> found = convergent_validity(load_builtin("classifiers"))  # doctest: +SKIP
    >>> found.observed.value, found.disattenuated.value  # doctest: +SKIP
    """
    check_fraction("level", level)
    responses, chosen = responses_and_spec(source, spec)
    if responses.n_models < MINIMUM_MODELS:
        raise DataError(f"correlations need at least {MINIMUM_MODELS} models, got {responses.n_models}.")
    if groups is not None and len(groups) != responses.n_models:
        raise ParameterError(f"groups must name one group a model, got {len(groups)} for {responses.n_models} models.")
    fits = fit_scenarios(responses, chosen, progress=progress)
    if len(fits) < 2:
        raise DataError(
            f"convergent validity needs two scenarios or more that can be fitted, got {len(fits)}. "
            "Give each item's scenario when responses are read (items=, itembank import --items)."
        )
    theta = np.column_stack([fit.theta for fit in fits])
    errors = np.column_stack([fit.standard_errors for fit in fits])
    log_flops = None if compute is None else log_flops_of(compute, responses.model_ids)
    found = correlate_abilities(
        theta,
        errors,
        scenarios=tuple(fit.name for fit in fits),
        model_ids=tuple(responses.model_ids),
        level=level,
        groups=groups,
        log_flops=log_flops,
        rng=as_generator(rng),
    )
    cautions = [f"{fit.name!r}: {fit.calibration.caution}" for fit in fits if fit.calibration.caution]
    return replace(found, message=". ".join([found.message, *cautions]))


def correlate_abilities(
    theta: FloatArray,
    standard_errors: FloatArray,
    *,
    scenarios: tuple[str, ...],
    model_ids: tuple[str, ...],
    level: float,
    groups: Sequence[str] | None = None,
    log_flops: FloatArray | None = None,
    rng: np.random.Generator,
) -> ConvergentValidity:
    """Correlate abilities (n_models, n_scenarios) that are known already; as `convergent_validity` otherwise."""
    n_scenarios = theta.shape[1]
    counts = kernel.pair_counts(theta)
    weights = None  # of Fisher's z; else how often each model counts in each draw
    if groups is not None:
        index = numbered_groups(groups, np.lexsort(rounded(theta).T))  # draws do not hang on names or places
        # ends of a 95 % interval then vary from one seed to another by a fifteenth of a standard deviation
        weights = kernel.resampling_weights(index, 2000, rng)
    observed = _with_interval(theta, counts, weights, level, n_covariates=0)
    reliability = kernel.reliabilities(theta, standard_errors)
    factor = kernel.attenuation(reliability)
    with np.errstate(invalid="ignore", divide="ignore"):
        disattenuated = tuple(np.clip(part / factor, -1.0, 1.0) for part in observed)
    beyond = None
    if log_flops is not None:
        residuals = kernel.residuals(theta, log_flops)
        beyond = _table(_with_interval(residuals, counts, weights, level, n_covariates=1), n_scenarios)
    table = _table(observed, n_scenarios)
    unusual = []
    first, second = np.triu_indices(n_scenarios, k=1)
    unclear = np.flatnonzero(~(table.lower[first, second] > 0.0))
    if unclear.size:
        names = [f"{scenarios[first[k]]} and {scenarios[second[k]]}" for k in unclear]
        unusual.append(f"{unclear.size} of {first.size} correlations are not clearly above 0: {shown(names)}")
    weak = [name for name, value in zip(scenarios, reliability, strict=True) if not value >= 0.8]
    if weak:
        unusual.append(f"abilities of {shown(weak)} are known poorly (reliability below 0.8)")
    return ConvergentValidity(
        scenarios=scenarios,
        model_ids=model_ids,
        theta=theta,
        standard_errors=standard_errors,
        reliability=reliability,
        observed=table,
        disattenuated=_table(disattenuated, n_scenarios),
        beyond_compute=beyond,
        n_models_of_pair=kernel.square(counts.astype(np.float64), n_scenarios, diagonal=0.0).astype(np.int64)
        + np.diag((~np.isnan(theta)).sum(axis=0)),
        order=cluster_order(table.value),
        level=level,
        interval="fisher" if groups is None else "bootstrap",
        n_groups=None if groups is None else len(set(groups)),
        message="; ".join(unusual) if unusual else "all correlations are clearly above 0",
    )


def cluster_order(correlation: FloatArray) -> IntArray:
    """Order of scenarios that puts similar ones side by side: average linkage of 1 - r, leaves in their best order."""
    n_scenarios = correlation.shape[0]
    if n_scenarios < 3:
        return np.arange(n_scenarios)
    # an unknown correlation counts as none: the order is for the eye only
    distance = 1.0 - np.where(np.isnan(correlation), 0.0, correlation)
    np.fill_diagonal(distance, 0.0)
    condensed = np.maximum(squareform(distance, checks=False), 0.0)
    result: IntArray = leaves_list(linkage(condensed, "average", optimal_ordering=True)).astype(np.int64)
    return result


def log_flops_of(compute: "TrainingCompute", model_ids: Sequence[str]) -> FloatArray:
    """Base-10 log of the training FLOP of each model, (n_models,)."""
    known = dict(zip(compute.model_ids, compute.flops.tolist(), strict=True))
    absent = [name for name in model_ids if name not in known]
    if absent:
        raise DataError(
            f"training compute must be given for every model, got none for {len(absent)} of {len(model_ids)}: "
            f"{shown(absent)}. Add them to the table of models."
        )
    return np.log10([known[name] for name in model_ids])


def _with_interval(
    values: FloatArray, counts: IntArray, weights: FloatArray | None, level: float, *, n_covariates: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    value = kernel.correlations(values)
    if weights is None:
        return value, *kernel.fisher_interval(value, counts, level, n_covariates=n_covariates)
    return value, *kernel.quantile_interval(kernel.weighted_correlations(values, weights), level)


def _table(parts: Sequence[FloatArray], n_scenarios: int) -> WithInterval:
    return WithInterval(*(kernel.square(part, n_scenarios) for part in parts))
