"""The verb `estimate`: full-benchmark scores from some responses."""

import numpy as np
import polars as pl
from scipy.stats import norm

from itembank.data.banks import Bank
from itembank.data.responses import ResponseMatrix
from itembank.data.selections import Selection
from itembank.data.targets import WIN_RATE, mean_win_rate
from itembank.errors import DataError, DataWarning, ParameterError, warn
from itembank.estimation.blocks import Benchmark, BlockEstimates, estimate_block, joined
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.gp_irt import estimated_factor
from itembank.estimation.noise import noise_ratio
from itembank.estimation.observations import Observations, bank_positions, observe
from itembank.estimation.posterior import standard_error
from itembank.estimation.specs import GPIRT, METHODS, EstimationSpec, SampleMean
from itembank.estimation.weighted import weighted_mean
from itembank.estimation.win_rates import win_rate_standard_error
from itembank.irt.binarise import item_thresholds
from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.numerics.threads import one_blas_thread

CELLS_AT_ONCE = 2**22
"""Models are worked on in blocks of about this many (model, item) cells, to bound memory."""


@one_blas_thread()
def estimate(
    bank: Bank,
    responses: ResponseMatrix,
    *,
    selection: Selection | None = None,
    method: EstimationSpec | str = "gp-irt",
    level: float = 0.95,
    include_win_rate: bool = False,
    rng: np.random.Generator | int | None = 0,
) -> ScoreEstimates:
    """Estimate what models would score on the full benchmark from some of their responses.

    Ability comes from all observed items of all scenarios (MAP, the bank's prior, responses made binary as in the
    calibration); scores are made of the raw responses. A scenario that was answered in full has its exact score
    by every method.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, over any items of the bank, in any order.
    selection : Selection, optional
        Use only these items, with their weights. Without it every response counts, as a random sample.
    method : spec or str
        'mean', 'weighted', 'p-irt' or 'gp-irt', or a spec with its choices.
    level : float
        Of the intervals.
    include_win_rate : bool
        Add the mean win rate over scenarios against the calibration models (those of the same id left out).
    rng : Generator, int or None
        For the win rate's standard error only.

    Returns
    -------
    ScoreEstimates
        Intervals are model-based: ``T +- z sqrt(V + (T - m)^2)`` cut to [0, 1], see `score_posterior`.
        A `DataWarning` tells when items of the selection are missing.

    Raises
    ------
    DataError
        When an item is not in the bank, or no item to be used was answered.
    ParameterError
        For another method or a level outside (0, 1).

    Examples
    --------
    >>> estimates = estimate(bank, responses, selection=selection)  # doctest: +SKIP
    >>> estimates.rows()[-1]["estimate"]  # doctest: +SKIP
    """
    spec = METHODS.resolve(method)
    if not 0.0 < level < 1.0:
        raise ParameterError(f"level must be between 0 and 1, got {level}.")
    observations = observe(bank, responses, selection)
    if isinstance(spec, SampleMean):
        _warn_of_unequal_weights(bank)
    found = _in_blocks(_benchmark(bank, observations, spec, selection), observations.responses, spec)
    values, errors = _with_overall(found, bank.targets.scenario_weights)
    targets: tuple[str, ...] = bank.targets.names
    if include_win_rate:
        rates, rate_errors = _win_rates(bank, responses, found, as_generator(rng))
        values, errors = np.column_stack([values, rates]), np.column_stack([errors, rate_errors])
        targets = (*targets, WIN_RATE)
    half_width = norm.ppf(0.5 + level / 2.0) * errors
    sizes, n_over_all = bank.targets.scenario_sizes, len(targets) - bank.targets.n_scenarios
    return ScoreEstimates(
        model_ids=tuple(responses.model_ids),
        targets=targets,
        value=values,
        standard_error=errors,
        low=np.maximum(values - half_width, 0.0),
        high=np.minimum(values + half_width, 1.0),
        n_items=np.column_stack([found.n_observed, *[found.n_observed.sum(axis=1)] * n_over_all]),
        n_total=np.array([*sizes, *[sizes.sum()] * n_over_all]),
        n_missing=observations.n_missing,
        level=level,
        method=METHODS.name_of(spec),
        bank_id=bank.bank_id,
        interval_kind="model-based",
        sample_share=found.sample_share if isinstance(spec, GPIRT) else None,
        abilities=found.abilities,
        ability_covariance=found.ability_covariance,
    )


def _warn_of_unequal_weights(bank: Bank) -> None:
    """Warn where the plain mean of a sample, which estimates the micro score, is asked for another."""
    sizes = bank.targets.scenario_sizes[bank.targets.scenario_index]
    if not np.allclose(bank.targets.weights * sizes, 1.0):
        warn(
            "the plain mean estimates scores in which all items weigh the same, but those of this bank do not "
            f"(within = {bank.targets.within!r}): take method 'weighted'.",
            DataWarning,
        )


def _benchmark(bank: Bank, observations: Observations, spec: EstimationSpec, selection: Selection | None) -> Benchmark:
    """Collect the arrays that every block of models needs."""
    targets = bank.targets
    thresholds = item_thresholds(bank.calibration.thresholds, targets.scenarios)
    choices = spec if isinstance(spec, GPIRT) else GPIRT()
    return Benchmark(
        parameters=bank.parameters,
        prior=bank.calibration.prior,
        weights=targets.weights,
        scenario_index=targets.scenario_index,
        n_scenarios=targets.n_scenarios,
        positions=observations.positions,
        sample_weights=observations.weights,
        thresholds=thresholds[targets.scenario_index[observations.positions]],
        noise_ratio=noise_ratio(bank),
        bias=np.where(np.isnan(bank.item_model_bias), choices.unmeasured_bias, bank.item_model_bias),
        response_variance=bank.response_variance,
        factor=_variance_factor(bank, observations, choices, selection),
        is_random=observations.is_random,
    )


def _variance_factor(bank: Bank, observations: Observations, choices: GPIRT, selection: Selection | None) -> FloatArray:
    """How many times smaller than a random sample's the variance of the weighted mean is, (n_scenarios,)."""
    n_scenarios = bank.targets.n_scenarios
    if observations.is_random or selection is None:
        return np.ones(n_scenarios)
    if choices.anchor_variance_factor != "estimated":
        return np.full(n_scenarios, float(choices.anchor_variance_factor))
    positions = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
    scenario = bank.targets.scenario_index[positions]
    weighted = weighted_mean(bank.responses.responses[:, positions], selection.weights, scenario, n_scenarios)
    n_selected = np.bincount(scenario, minlength=n_scenarios)
    return estimated_factor(weighted, bank.scenario_scores, bank.response_variance, n_selected)


def _in_blocks(benchmark: Benchmark, responses: FloatArray, spec: EstimationSpec) -> BlockEstimates:
    n_block = max(1, CELLS_AT_ONCE // benchmark.parameters.n_items)
    starts = range(0, responses.shape[0], n_block)
    return joined([estimate_block(benchmark, responses[start : start + n_block], spec) for start in starts])


def _with_overall(found: BlockEstimates, scenario_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values and standard errors of the scenarios and of the overall score, each (n_models, n_scenarios + 1).

    The overall score has its own variance ``w' V w``: scenario scores share the uncertain ability.
    """
    variances = np.einsum("mjj->mj", found.posterior_covariance)
    overall_variance = np.einsum("j,mjk,k->m", scenario_weights, found.posterior_covariance, scenario_weights)
    values = np.column_stack([found.value, found.value @ scenario_weights])
    means = np.column_stack([found.posterior_mean, found.posterior_mean @ scenario_weights])
    return values, standard_error(values, means, np.column_stack([variances, overall_variance]))


def _win_rates(
    bank: Bank, responses: ResponseMatrix, found: BlockEstimates, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Mean win rate against the calibration models and its standard error, each (n_models,)."""
    is_other = ~bank.responses.models["model_id"].is_in(pl.Series(responses.model_ids).implode()).to_numpy()
    reference = bank.scenario_scores[is_other]
    reference = reference[~np.isnan(reference).any(axis=1)]
    if reference.shape[0] == 0:
        raise DataError("the mean win rate needs a calibration model other than those estimated, got none.")
    rates, errors = np.full((2, responses.n_models), np.nan)
    is_whole = ~np.isnan(found.value).any(axis=1)
    values, means = found.value[is_whole], found.posterior_mean[is_whole]
    distance = values - means
    covariance = found.posterior_covariance[is_whole] + distance[:, :, None] * distance[:, None, :]
    rates[is_whole] = mean_win_rate(values, reference)
    errors[is_whole] = win_rate_standard_error(values, covariance, reference, rng)
    return rates, errors
