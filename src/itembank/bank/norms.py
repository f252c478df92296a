"""Norms: what past models taught of the items, found in their responses or read from a published bank.

How answers scatter, what they have in common, and what new models may differ by.
"""

from typing import Literal

import numpy as np
import polars as pl

from itembank.bank.banks import KNOWN_PARAMETERS, Bank, Calibration
from itembank.irt.bernoulli import probability
from itembank.irt.discrepancy import Discrepancy, measure_discrepancy, with_columns, with_discrepancy
from itembank.irt.families import expected_curve
from itembank.irt.linear_gaussian import Columns, FactorModel, fit_factor_model
from itembank.numerics import blocks
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import order_by_answers


def noise_ratio(bank: Bank) -> FloatArray:
    """Squared distance of raw calibration responses from p over ``p (1 - p)``, (n_scenarios,).

    Responses that were made binary, pass rates and probabilities vary less around the item model than zeros and ones
    would: ``p (1 - p)`` is the largest variance a number in [0, 1] with mean p can have. One for binary scenarios.
    """
    if bank.published is not None:
        return bank.published.noise_ratio
    ratio = np.ones(bank.targets.n_scenarios)
    for scenario, name in enumerate(bank.targets.scenarios):
        if name not in bank.calibration.thresholds and bank.parameters.family == "bernoulli":
            continue
        items = np.flatnonzero(bank.targets.scenario_index == scenario)
        responses = bank.responses.of_items(items)
        p = probability(bank.parameters.take(items), bank.calibration.abilities)
        expected = np.where(np.isnan(responses), 0.0, p * (1.0 - p)).sum()
        if expected > 0.0:
            ratio[scenario] = np.nansum((responses - p) ** 2) / expected
    return ratio


def bank_factor_model(
    bank: Bank, *, n_factors: int | Literal["auto"] = "auto", discrepancy: float | Literal["auto"] = 0.0
) -> FactorModel:
    """Linear-Gaussian model of the calibration responses, fitted once for a bank in memory.

    `discrepancy` is the standard deviation of the shifts of scenarios that new models may show and past ones did not
    (`with_discrepancy`); 'auto' measures it by cross-validation, of subscenarios too, and takes 0.03 at
    least for scenarios. A bank that leaves out items (`Bank.rest`) has one more row for those of each scenario.
    """
    fitted = fitted_factor_model(bank, n_factors)

    def make() -> FactorModel:
        if discrepancy == "auto":
            measured = measured_discrepancy(bank)
            # new models may differ even where past models are many: these say nothing of what comes after them
            scales = Discrepancy(max(measured.level, 0.03), measured.subgroup)
        else:
            scales = Discrepancy(float(discrepancy))
        if bank.rest is not None:
            return with_columns(fitted, bank.rest.shifts, scales, bank.rest.subgroups)
        return with_discrepancy(fitted, bank.targets.scenario_index, scales, subgroups=subscenarios(bank))

    return bank.cache.remember(("factor model", n_factors, discrepancy), make)


def fitted_factor_model(bank: Bank, n_factors: int | Literal["auto"] = "auto") -> FactorModel:
    """Linear-Gaussian model of the calibration responses as they are, fitted once for a bank and kept in its cache."""
    if bank.published is not None and n_factors in {"auto", bank.published.factor_model.n_factors}:
        return bank.published.factor_model
    if bank.calibration.method == KNOWN_PARAMETERS and n_factors in {"auto", bank.calibration.n_dims}:
        return bank.cache.remember("implied factor model", lambda: implied_factor_model(bank.calibration))
    bank.check_responses("A factor model of past responses needs")

    def fit() -> dict[str, FloatArray]:
        fitted = fit_factor_model(columns_of(bank.responses), n_factors=n_factors)
        # the layout in memory of what is read from a file, on which the last bit of products depends
        loadings = np.ascontiguousarray(fitted.loadings)
        return {"mean": fitted.mean, "loadings": loadings, "noise": fitted.noise}

    def fits(kept: dict[str, FloatArray]) -> bool:
        shapes = {name: array.shape[:1] for name, array in kept.items()}
        return shapes == dict.fromkeys(("mean", "loadings", "noise"), (bank.n_items,)) and kept["loadings"].ndim == 2

    return FactorModel(**bank.cache.arrays(f"factor-model-{n_factors}", fit, fits=fits))


def implied_factor_model(calibration: Calibration) -> FactorModel:
    """Return the best linear description of responses that the item model and its prior of ability imply.

    Means and covariances of responses with abilities are exact (Stein's lemma: ``Cov(y, theta) = E[p'] a Sigma``).
    """
    parameters, prior = calibration.parameters, calibration.prior
    along = parameters.loadings @ np.linalg.cholesky(prior.covariance)
    logit = parameters.loadings @ prior.mean + parameters.intercept
    mean, slope, _ = expected_curve(parameters, logit, np.linalg.norm(along, axis=1), n_nodes=61)
    loadings = slope[:, None] * along
    return FactorModel(mean, loadings, mean * (1.0 - mean) - np.sum(loadings**2, axis=1))


def measured_discrepancy(bank: Bank) -> Discrepancy:
    """Measure by cross-validation what new models may differ by, once for a bank, and keep it."""
    if bank.published is not None:
        return bank.published.discrepancy
    if bank.calibration.method == KNOWN_PARAMETERS:
        return Discrepancy(0.0)

    def measure() -> dict[str, FloatArray]:
        rows = bank.distinct_models  # what others did not answer would be filled in, and seem not to shift
        rows = rows if rows.size else np.arange(bank.n_models)
        ascending = rows[order_by_answers(bank.responses, rows, bank.content_order)]
        in_order = columns_of(bank.responses).of_models(ascending)
        found = measure_discrepancy(in_order, bank.targets.scenario_index, subgroups=subscenarios(bank))
        return {"scales": np.array([found.level, found.subgroup])}

    kept = bank.cache.arrays(
        "discrepancy", measure, fits=lambda kept: set(kept) == {"scales"} and kept["scales"].shape == (2,)
    )
    return Discrepancy(*kept["scales"].tolist())


def columns_of(responses: ResponseMatrix) -> Columns:
    """Read very many responses some items at a time, and others at once."""
    if not responses.is_large:
        return Columns.of(responses.responses)
    return Columns(
        responses.n_models,
        responses.n_items,
        lambda place: responses.of_items(np.arange(place.start, place.stop)),
        max(1, blocks.CELLS_AT_ONCE // max(1, responses.n_models)),
    )


def subscenarios(bank: Bank) -> IntArray | None:
    """Return the number of each item's (scenario, subscenario); None where scenarios have no parts."""
    items = bank.responses.items
    parts = items.select(part=pl.struct("scenario", pl.col("subscenario").fill_null("")).rank("dense"))["part"]
    if parts.n_unique() == bank.targets.n_scenarios:
        return None
    return parts.cast(pl.Int64).to_numpy() - 1
