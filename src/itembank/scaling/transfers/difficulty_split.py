"""Easy and hard halves of a set of items, by what calibration models answered."""

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray


def item_means(responses: FloatArray) -> FloatArray:
    """Mean response to each item, put right for who answered it, (n_items,).

    The grand mean, plus the mean over the models that answered of ``response - the model's own mean``. With no
    response missing this is the item's mean. NaN where nobody answered.

    Parameters
    ----------
    responses : (n_models, n_items)
        NaN where missing.
    """
    known = ~np.isnan(responses)
    values = np.where(known, responses, 0.0)
    of_model = values.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    surplus = np.where(known, values - of_model[:, None], 0.0).sum(axis=0)
    n_answers = known.sum(axis=0)
    grand = of_model[known.any(axis=1)].mean() if known.any() else np.nan
    result: FloatArray = np.divide(surplus, n_answers, out=np.full(n_answers.shape, np.nan), where=n_answers > 0)
    return grand + result


def split_by_difficulty(responses: FloatArray, easy_fraction: float) -> tuple[IntArray, IntArray]:
    """Divide items into easy and hard ones by `item_means`; ties go by their place.

    Give the responses of calibration models only: a split that has seen the models it is tested on knows something of
    their answers to the hard items.

    Returns
    -------
    easy, hard : (n_easy,), (n_hard,)
        Indices in rising order. Items that nobody answered are in neither.
    """
    means = np.round(item_means(responses), 12)  # two sums of the same responses may differ by rounding
    order = np.argsort(-means, kind="stable")
    order = order[~np.isnan(means[order])]
    n_easy = min(max(round(easy_fraction * order.size), 1), order.size - 1)
    return np.sort(order[:n_easy]), np.sort(order[n_easy:])
