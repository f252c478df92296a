"""Which models share items: abilities of models that share none, not even through others, cannot be compared."""

import numpy as np

from itembank.errors import N_SHOWN, DataWarning, shown, warn
from itembank.numerics.arrays import BoolArray, IntArray
from itembank.responses.responses import ResponseMatrix


def connected_models(observed: BoolArray) -> list[IntArray]:
    """Return groups of models that shared items link, by whoever else answered them.

    Parameters
    ----------
    observed : (n_models, n_items)

    Returns
    -------
    list of indices of models
        In the order of their first models; a model without responses is a group of its own.
    """
    groups = []
    is_left = np.ones(observed.shape[0], dtype=bool)
    while is_left.any():
        is_inside = np.zeros_like(is_left)
        is_inside[np.argmax(is_left)] = True
        n_inside = 0
        while is_inside.sum() > n_inside:
            n_inside = int(is_inside.sum())
            items = observed[is_inside].any(axis=0)
            shared = observed if items.all() else observed[:, items]  # a copy of all takes long
            is_inside |= is_left & shared.any(axis=1)
        groups.append(np.flatnonzero(is_inside))
        is_left &= ~is_inside
    return groups


def warn_of_no_overlap(responses: ResponseMatrix) -> bool:
    """Warn when models fall into groups that share no items, which no calibration can bring onto one scale.

    Returns
    -------
    bool
        Whether they do.
    """
    groups = connected_models(responses.observed)
    if len(groups) == 1:
        return False
    if len(groups) == responses.n_models:
        what = (
            f"{responses.n_models} models answered {responses.n_items} items, but no item was answered by more than "
            "one model"
        )
    else:
        names = [shown([responses.model_ids[row] for row in group], 2) for group in groups[:N_SHOWN]]
        what = (
            f"{responses.n_models} models fall into {len(groups)} groups that share no items: {'; '.join(names)}"
            f"{'; ...' if len(groups) > N_SHOWN else ''}"
        )
    warn(f"{what}: a bank cannot be calibrated on these. Read results of the same tasks for all of them.", DataWarning)
    return True
