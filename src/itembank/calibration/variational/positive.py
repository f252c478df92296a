"""Keeping slopes above zero, in one dimension."""

from dataclasses import replace

import numpy as np

from itembank.calibration.variational.state import Posterior

LEAST_SLOPE = 0.01


def with_positive_slopes(posterior: Posterior) -> Posterior:
    """Move items whose slope is below the least one to the most probable point that has it.

    On the line ``a = least`` that is ``beta + (least - a) S_.a / S_aa`` for a normal posterior of covariance S.
    """
    if not posterior.is_positive:
        return posterior
    short = np.maximum(LEAST_SLOPE - posterior.item_mean[:, 0], 0.0)
    if not short.any():
        return posterior
    covariance = posterior.item_covariance
    direction = covariance[:, :, 0] / covariance[:, :1, 0]
    return replace(posterior, item_mean=posterior.item_mean + short[:, None] * direction)
