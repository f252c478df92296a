"""Decision accuracy: how often a law orders two training recipes as the target size does (IRSL eq. 5)."""

import numpy as np

from itembank.errors import ParameterError
from itembank.numerics.arrays import FloatArray


def decision_accuracy(predicted: FloatArray, actual: FloatArray) -> float:
    """Fraction of pairs of recipes that predicted values order as the actual ones do.

    ``sign(predicted_A - predicted_B) = sign(actual_A - actual_B)`` over all pairs (IRSL eq. 5). Two things the equation
    leaves open: pairs whose actual values are equal are left out, since no choice between them is wrong, and a tie of
    predictions counts one half, as a coin would.

    Parameters
    ----------
    predicted, actual : (n_recipes,)
        NaN where there is none: the recipe is left out.

    Returns
    -------
    float
        NaN when no pair can be told apart.

    Raises
    ------
    ParameterError
        When the lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> decision_accuracy(np.array([0.3, 0.5, 0.4]), np.array([0.2, 0.6, 0.7]))
    0.6666666666666666
    """
    predicted, actual = np.asarray(predicted, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    if predicted.shape != actual.shape or predicted.ndim != 1:
        raise ParameterError(
            f"predicted and actual must be as long as each other, got shapes {predicted.shape} and {actual.shape}."
        )
    is_known = np.isfinite(predicted) & np.isfinite(actual)
    return float(pairwise_agreement(predicted[is_known], actual[is_known]))


def pairwise_agreement(predicted: FloatArray, actual: FloatArray) -> float:
    """`decision_accuracy` of finite values."""
    first, second = np.triu_indices(len(actual), k=1)
    wanted = np.sign(actual[first] - actual[second])
    got = np.sign(predicted[first] - predicted[second])
    is_decided = wanted != 0.0
    if not is_decided.any():
        return float("nan")
    agreement = np.where(got == 0.0, 0.5, got == wanted)
    return float(agreement[is_decided].mean())
