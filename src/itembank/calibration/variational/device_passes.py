"""Passes over responses that lie on another device: what `passes` does, on arrays of any namespace.

Posterior and statistics are NumPy's in float64, on the host. What has a number for each cell stays on the device:
logits, the rule, and the matrix products of its results. Whoever makes blocks with this module's functions gets these
passes from `item_statistics` and `ability_statistics`.
"""

from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from itembank.calibration.variational.device_blocks import DeviceBlocks, codes_on_device, numbers_on_device
from itembank.calibration.variational.device_cells import RULES, Guessing, guessing_terms
from itembank.calibration.variational.device_coupling import DeviceCross
from itembank.calibration.variational.passes import (
    AbilityStatistics,
    CellRule,
    ItemStatistics,
    ability_statistics,
    item_squares,
    item_statistics,
    model_numbers,
    slope_moments,
)
from itembank.calibration.variational.products import ModelNumbers
from itembank.calibration.variational.state import Posterior
from itembank.numerics.devices import DeviceArray

__all__ = ["codes_on_device", "numbers_on_device"]


class _Block(NamedTuple):
    """What the rule gives for a block of items, as the `Block` of `passes`, on the device.

    Likelihood is (n_block,) in double precision, the rest (n_block, n_models).
    """

    items: slice
    mean: DeviceArray
    linear: DeviceArray
    curvature: DeviceArray
    likelihood: DeviceArray


@item_statistics.register(DeviceBlocks)
def _item_statistics(blocks: DeviceBlocks, posterior: Posterior, rule: CellRule) -> ItemStatistics:
    """As `item_statistics`."""
    n_dims, host = posterior.n_dims, blocks.device.host
    precision = np.empty((blocks.n_items, (n_dims + 1) * (n_dims + 2) // 2))
    linear = np.empty((blocks.n_items, n_dims + 1))
    likelihood = np.empty(blocks.n_items)
    numbers = _model_numbers(posterior, blocks)
    for block in _cells(blocks, posterior, rule, numbers):
        of_precision, of_linear = numbers.item_sums(block.curvature, block.linear)
        precision[block.items], linear[block.items] = host(of_precision), host(of_linear)
        likelihood[block.items] = host(block.likelihood)
    return ItemStatistics(precision, linear, likelihood)


@ability_statistics.register(DeviceBlocks)
def _ability_statistics(
    blocks: DeviceBlocks, posterior: Posterior, rule: CellRule, *, with_cross: bool = False
) -> AbilityStatistics:
    """As `ability_statistics`."""
    device, xp, n_dims = blocks.device, blocks.device.xp, posterior.n_dims
    features = device.put(slope_moments(posterior), blocks.dtype)
    loadings = device.put(posterior.item_mean[:, :n_dims], blocks.dtype)
    n_models = posterior.ability_mean.shape[0]
    curved, linear = (
        xp.zeros((n_models, one.shape[1]), dtype=xp.float64, device=device.handle) for one in (features, loadings)
    )
    likelihood = np.empty(blocks.n_items)
    crosses = []
    for block in _cells(blocks, posterior, rule, _model_numbers(posterior, blocks)):
        curved = curved + xp.astype(block.curvature.T @ features[block.items, ...], xp.float64)
        linear = linear + xp.astype(block.linear.T @ loadings[block.items, ...], xp.float64)
        likelihood[block.items] = device.host(block.likelihood)
        if with_cross:
            crosses.append((block.curvature, block.linear - block.curvature * block.mean))
    cross = None
    if with_cross:
        cross = DeviceCross(device, blocks.dtype, *(xp.concat(one) for one in zip(*crosses, strict=True)))
    sums = device.host(curved)
    return AbilityStatistics(sums[:, :-n_dims], device.host(linear) - sums[:, -n_dims:], likelihood, cross)


def _cells(blocks: DeviceBlocks, posterior: Posterior, rule: CellRule, numbers: ModelNumbers) -> Iterator[_Block]:
    """Go over the responses block by block; `numbers` are on the device."""
    device, dtype, xp = blocks.device, blocks.dtype, blocks.device.xp
    item_mean, of_items = device.put(posterior.item_mean, dtype), device.put(item_squares(posterior), dtype)
    guessing = Guessing.of(blocks.lower_asymptote, dtype, device)
    for part, _, values, weights in blocks.parts():
        items = cast("slice", part)
        mean, variance = numbers.logits(item_mean[items, ...], of_items[items, ...])
        correction, curvature, log_cosh = RULES[rule](xp, mean, variance)
        if guessing is None:
            linear, value = values, values * mean
        else:
            linear, value = guessing_terms(xp, mean, values, guessing.take(items))
        value = value - log_cosh
        if correction is not None:
            linear = linear + correction
        if weights is not None:
            linear, curvature, value = linear * weights, curvature * weights, value * weights
        yield _Block(items, mean, linear, curvature, xp.sum(value, axis=1, dtype=xp.float64))


def _model_numbers(posterior: Posterior, blocks: DeviceBlocks) -> ModelNumbers:
    """Bring the numbers of the models to the device."""
    return ModelNumbers(*map(blocks.device.put, model_numbers(posterior, blocks.dtype)))
