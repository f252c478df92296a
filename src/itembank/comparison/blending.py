"""How much of a difference should come from the estimator, how much from the raw paired difference."""

import numpy as np

from itembank.numerics.arrays import FloatArray


def estimator_share(raw_errors: FloatArray, estimator_errors: FloatArray) -> float:
    """Share c of the estimator that makes differences of ``(1 - c) raw + c estimate`` most accurate.

    What all models' errors have in common cancels in every difference, so c minimises the variance over models of
    ``(1 - c) r + c e``, not its mean square: an estimator that is best for scores need not be for differences.

    Parameters
    ----------
    raw_errors, estimator_errors : (n_models,)
        r and e: errors of the plain weighted mean and of the estimator, which did not know the model.

    Returns
    -------
    float
        In [0, 1]; 0 where both make the same errors.
    """
    r, step = _centred(raw_errors), _centred(estimator_errors - raw_errors)
    return float(_share(-(r @ step), step @ step))


def blended_errors(raw_errors: FloatArray, estimator_errors: FloatArray) -> FloatArray:
    """Errors of the blend, (n_models,), each with the share that the other models would have chosen.

    With the share of all models, errors would be too small where there are few. Leaving model l out of centred
    sums of M products takes ``M / (M - 1) x_l y_l`` from them.
    """
    n_models = raw_errors.shape[0]
    r, step = _centred(raw_errors), _centred(estimator_errors - raw_errors)
    factor = n_models / (n_models - 1.0)
    share = _share(-(r @ step) + factor * r * step, step @ step - factor * step**2)
    return (1.0 - share) * raw_errors + share * estimator_errors


def _share(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Quotient in [0, 1], 0 where the denominator is."""
    positive = denominator > 1e-300
    return np.clip(np.where(positive, numerator / np.where(positive, denominator, 1.0), 0.0), 0.0, 1.0)


def _centred(errors: FloatArray) -> FloatArray:
    result: FloatArray = errors - errors.mean()
    return result
