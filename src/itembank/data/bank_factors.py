"""The factor model of a bank's calibration responses."""

from typing import Literal

from itembank.data.banks import Bank
from itembank.factors.discrepancy import with_discrepancy
from itembank.factors.linear_gaussian import FactorModel, fit_factor_model


def bank_factor_model(
    bank: Bank, *, n_factors: int | Literal["auto"] = "auto", discrepancy: float = 0.0
) -> FactorModel:
    """Linear-Gaussian model of the calibration responses, fitted once for a bank in memory.

    Parameters
    ----------
    bank : Bank
    n_factors : int or 'auto'
        As for `fit_factor_model`.
    discrepancy : float
        Standard deviation of the shifts that new models may show and past ones did not, see `with_discrepancy`;
        groups are the scenarios.
    """
    fitted = bank.cache.remember(
        ("factor model", n_factors), lambda: fit_factor_model(bank.responses.responses, n_factors=n_factors)
    )
    return bank.cache.remember(
        ("factor model", n_factors, discrepancy),
        lambda: with_discrepancy(fitted, bank.targets.scenario_index, scale=discrepancy),
    )
