"""Make responses in [0, 1] binary (tinyBenchmarks 4.3)."""

from collections.abc import Mapping, Sequence

import numpy as np

from itembank.numerics.arrays import FloatArray


def apply_thresholds(responses: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Return 1 where a response (n_models, n_items) reaches its item's threshold (n_items,) and 0 below.

    Missing responses stay missing, and a threshold of NaN leaves the item's as they are.
    """
    # At or above, not above, as `best_threshold` counts: a threshold is one of the values that occur.
    with np.errstate(invalid="ignore"):
        binary = (responses >= thresholds).astype(np.float64)
    keep = np.isnan(thresholds) | np.isnan(responses)  # (n_models, n_items)
    return np.where(keep, responses, binary)


def item_thresholds(thresholds: Mapping[str, float], scenarios: Sequence[str]) -> FloatArray:
    """Threshold of each item, (n_items,), from those of the scenarios it names; NaN where a scenario has none."""
    return np.array([thresholds.get(name, np.nan) for name in scenarios], dtype=np.float64)
