"""The products of a coupled step on another device; see `coupling`."""

from dataclasses import dataclass

import numpy as np

from itembank.calibration.variational.coupling import CrossProducts, cross_products, times
from itembank.calibration.variational.passes import extended
from itembank.calibration.variational.state import Posterior
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.devices import Device, DeviceArray


@dataclass(frozen=True, slots=True)
class DeviceCross:
    """As `CrossTerms`, on a device: (n_items, n_models) each."""

    device: Device
    dtype: np.dtype[np.floating]
    curvature: DeviceArray
    residual: DeviceArray

    def with_those_of(self, items: BoolArray, other: "DeviceCross") -> "DeviceCross":
        """Replace those of the items marked, (n_items,)."""
        xp, put = self.device.xp, self.device.put
        # the standard writes no scattered rows: each item takes the row that would be its own, which counts if marked
        row, is_marked = put(np.maximum(np.cumsum(items) - 1, 0)), put(items[:, None])

        def merged(old: DeviceArray, new: DeviceArray) -> DeviceArray:
            return xp.where(is_marked, xp.take(new, row, axis=0), old)

        merged_both = merged(self.curvature, other.curvature), merged(self.residual, other.residual)
        return DeviceCross(self.device, self.dtype, *merged_both)


@dataclass(frozen=True, slots=True)
class DeviceCoupling:
    """As `Coupling`; what has a number for each cell is on the device, all else on the host."""

    cross: DeviceCross
    extended: DeviceArray
    loadings: DeviceArray
    item_covariance: FloatArray

    def items_follow(self, ability_step: FloatArray) -> FloatArray:
        """As that of `Coupling`."""
        device, cross = self.cross.device, self.cross
        step = device.put(ability_step, cross.dtype)
        product = device.host(((self.loadings @ step.T) * cross.curvature) @ self.extended)
        product[:, : ability_step.shape[1]] -= device.host(cross.residual @ step)
        return times(self.item_covariance, product)

    def abilities_follow_items(self, ability_step: FloatArray) -> FloatArray:
        """As that of `Coupling`."""
        device, cross, n_dims = self.cross.device, self.cross, ability_step.shape[1]
        items = device.put(self.items_follow(ability_step), cross.dtype)
        weighted = (items @ self.extended.T) * cross.curvature
        return device.host(weighted.T @ self.loadings - cross.residual.T @ items[:, :n_dims])


@cross_products.register(DeviceCross)
def _on_device(cross: DeviceCross, posterior: Posterior) -> CrossProducts:
    return DeviceCoupling(
        cross,
        cross.device.put(extended(posterior.ability_mean), cross.dtype),
        cross.device.put(posterior.item_mean[:, : posterior.n_dims], cross.dtype),
        posterior.item_covariance,
    )
