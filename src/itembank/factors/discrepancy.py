"""What calibration models cannot show: new models may differ from all of them, but not without pattern.

A factor model of past responses gives items that past models hardly told apart almost no variance, and then takes
whatever a new kind of model does on them for noise of other items. A model stronger than any before solves items
that nobody solved; a model tuned for a domain moves all of its items. So the items of a group, and those of like
difficulty within it most of all, are allowed to move together by some points more than the past has shown.
"""

import numpy as np

from itembank.factors.linear_gaussian import FactorModel
from itembank.numerics.arrays import FloatArray, IntArray

N_BINS = 5
ITEMS_PER_BIN = 10
"""A group gets a bin for each of so many items, up to `N_BINS`."""
WIDTH = 0.7
"""Standard deviation of a bin's bell, in bins."""


def with_discrepancy(model: FactorModel, groups: IntArray, *, scale: float, n_bins: int = N_BINS) -> FactorModel:
    """Add factors that raise or lower all items of a group, and its items of like difficulty, together.

    The response of item i gets ``scale (u_g + sum_b B_ib u_gb)`` with ``u ~ N(0, 1)`` independent, where B are bells
    over the rank of the item's mean response in its group g, summing to one for each item.

    Parameters
    ----------
    model : FactorModel
    groups : (n_items,)
        Group of each item, numbered from 0: scenarios, say.
    scale : float
        Standard deviation of each such shift on the scale of responses; 0 gives the model back.
    n_bins : int
        Bells in a group, fewer in groups of fewer than ten items for each.

    Returns
    -------
    FactorModel
        With up to ``n_groups (n_bins + 1)`` factors more.
    """
    if scale == 0.0:
        return model
    shifts = [
        _shifts(model.mean, np.flatnonzero(groups == group), n_bins) for group in range(int(groups.max(initial=-1)) + 1)
    ]
    return FactorModel(
        model.mean, np.column_stack([model.loadings, *(scale * columns for columns in shifts)]), model.noise
    )


def _shifts(mean: FloatArray, items: IntArray, n_bins: int) -> FloatArray:
    """Level and bells of one group, zero outside it, (n_items, 1 + number of bells)."""
    n_bells = int(np.clip(items.size // ITEMS_PER_BIN, 1, n_bins))
    columns = np.zeros((mean.shape[0], 1 + (n_bells if n_bells > 1 else 0)))
    columns[items, 0] = 1.0
    if n_bells > 1:
        rank = (np.argsort(np.argsort(mean[items], kind="stable")) + 0.5) / items.size
        centres = (np.arange(n_bells) + 0.5) / n_bells
        bells = np.exp(-0.5 * ((rank[:, None] - centres) * n_bells / WIDTH) ** 2)
        columns[items, 1:] = bells / bells.sum(axis=1, keepdims=True)
    return columns
