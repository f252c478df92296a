"""The factor model of a bank's calibration responses."""

from typing import Literal

import polars as pl

from itembank.data.banks import Bank
from itembank.factors.discrepancy import Discrepancy, measure_discrepancy, with_discrepancy
from itembank.factors.linear_gaussian import FactorModel, fit_factor_model
from itembank.numerics.arrays import IntArray
from itembank.numerics.ties import id_order

LEAST_LEVEL = 0.03
"""What new models may differ even where calibration models are many: these say nothing of what comes after them."""


def bank_factor_model(
    bank: Bank, *, n_factors: int | Literal["auto"] = "auto", discrepancy: float | Literal["auto"] = 0.0
) -> FactorModel:
    """Linear-Gaussian model of the calibration responses, fitted once for a bank in memory.

    Parameters
    ----------
    bank : Bank
    n_factors : int or 'auto'
        As for `fit_factor_model`.
    discrepancy : float or 'auto'
        Standard deviation of the shifts of scenarios that new models may show and past ones did not, see
        `with_discrepancy`. 'auto' measures it on calibration models left out, of subscenarios too, and takes 0.03 at
        least for scenarios.
    """
    fitted = bank.cache.remember(
        ("factor model", n_factors), lambda: fit_factor_model(bank.responses.responses, n_factors=n_factors)
    )
    return bank.cache.remember(
        ("factor model", n_factors, discrepancy),
        lambda: with_discrepancy(
            fitted, bank.targets.scenario_index, _discrepancy(bank, discrepancy), subgroups=_subscenarios(bank)
        ),
    )


def _discrepancy(bank: Bank, wanted: float | Literal["auto"]) -> Discrepancy:
    if wanted != "auto":
        return Discrepancy(float(wanted))
    measured = bank.cache.remember(
        "discrepancy",
        lambda: measure_discrepancy(
            bank.responses.responses[id_order(bank.responses.model_ids)],
            bank.targets.scenario_index,
            subgroups=_subscenarios(bank),
        ),
    )
    return Discrepancy(max(measured.level, LEAST_LEVEL), measured.subgroup)


def _subscenarios(bank: Bank) -> IntArray | None:
    """Return the number of each item's (scenario, subscenario); None where scenarios have no parts."""
    items = bank.responses.items
    parts = items.select(part=pl.struct("scenario", pl.col("subscenario").fill_null("")).rank("dense"))["part"]
    if parts.n_unique() == bank.targets.n_scenarios:
        return None
    return parts.cast(pl.Int64).to_numpy() - 1
