"""The verb `item_regression`: what is known of items, and how it goes with their intercepts."""

import numpy as np

from itembank.bank.arguments import GivenBank, as_bank
from itembank.calibration.item_regressions import ItemRegression
from itembank.calibration.pooled_regression import FeatureValues, pooled_regression
from itembank.errors import ParameterError, remedy
from itembank.responses.item_features import covariate_features


def item_regression(bank: GivenBank) -> ItemRegression:
    """Tell how the intercepts of a bank go with what is known of its items.

    Parameters
    ----------
    bank : Bank or path
        Calibrated with `item_covariates`.

    Raises
    ------
    ParameterError
        When it was not, or the columns do not tell its items apart.

    Examples
    --------
    >>> bank = ib.build_bank(responses, Variational(item_covariates=("category",)))  # doctest: +SKIP
    >>> item_regression(bank).predict(new_items)  # doctest: +SKIP
    """
    bank = as_bank(bank)
    features = covariate_features(bank.responses.items, bank.calibration.item_covariates)
    if features is None:
        advice = remedy("Variational(item_covariates=[...])", "itembank calibrate --item-covariate COLUMN")
        raise ParameterError(f"the bank must have been calibrated with item covariates, got none. Use {advice}.")
    calibration = bank.calibration
    fitted = ~calibration.is_degenerate
    known = FeatureValues(features.of(bank.responses.items)[fitted], features.column_index)
    variances = calibration.item_covariance[fitted, -1, -1]
    found = pooled_regression(calibration.parameters.intercept[fitted], variances, known)
    centre = known.values.mean(axis=0)
    spread = float(np.var((known.values - centre) @ found.weights))
    return ItemRegression(features, centre, found, spread / (spread + found.residual_variance))
