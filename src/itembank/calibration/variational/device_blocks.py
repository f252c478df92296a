"""Responses laid out for the passes on another device, such as a GPU: held there, or sent a part at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from itembank.calibration.variational.blocks import MOST_COUPLED_CELLS, Blocks, Part, ResponseBlocks
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.devices import Device, DeviceArray
from itembank.responses.item_codes import RIGHT, ItemCodes

SHARE_HELD = 0.5
"""Of a device's free memory, that responses may fill. Larger ones stay on the host and are sent in every pass."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Numbers or codes of each cell, (n_items, n_models).

    Attributes
    ----------
    device : Device
    cells : array of the device, array of NumPy, or ItemCodes
        The last two lie on the host and are sent when they are needed.
    is_held : bool
        Whether they lie on the device.
    """

    device: Device
    cells: DeviceArray
    is_held: bool = False

    def block(self, items: slice) -> DeviceArray:
        """Return some consecutive items, on the device."""
        if self.is_held:
            return self.cells[items, ...]
        return self.device.put(self.cells.block(items) if isinstance(self.cells, ItemCodes) else self.cells[items])

    def take(self, items: IntArray) -> "Rows":
        """Return some of the items, where they lie."""
        if self.is_held:
            return replace(self, cells=self.device.xp.take(self.cells, self.device.put(items), axis=0))
        return replace(self, cells=self.cells.take(items) if isinstance(self.cells, ItemCodes) else self.cells[items])

    def held(self, shape: tuple[int, int], dtype: np.dtype[np.generic]) -> "Rows":
        """Bring all of them to the device, a block at a time."""
        xp = self.device.xp
        there = xp.empty(shape, dtype=self.device.kind(dtype), device=self.device.handle)
        for part in blocks_of(shape, self.device):
            there[part, ...] = self.block(part)
        return Rows(self.device, there, is_held=True)


@dataclass(frozen=True, slots=True)
class DeviceBlocks(ResponseBlocks):
    """Responses of family 'bernoulli' or 'binomial' laid out for the passes on a device.

    Attributes
    ----------
    device : Device
    values : Rows
        As those of `Blocks`, or codes of right and wrong answers.
    weights : Rows or None
        As those of `Blocks`; codes need none.
    is_coded : bool
        Whether values are codes.
    is_complete : bool
        Whether each response counts once.
    shape : (n_items, n_models)
    lower_asymptote : (n_items,)
        On the host.
    dtype : dtype
        Kind of numbers of the passes.
    """

    device: Device
    values: Rows
    weights: Rows | None
    is_coded: bool
    is_complete: bool
    shape: tuple[int, int]
    lower_asymptote: FloatArray
    dtype: np.dtype[np.floating]

    @property
    def n_cells(self) -> int:
        """Number of cells, those without a response included."""
        return self.shape[0] * self.shape[1]

    @property
    def may_couple(self) -> bool:
        """Whether a coupled step may keep numbers of every cell: where it may without the device."""
        return not self.is_coded and self.n_cells <= MOST_COUPLED_CELLS

    def parts(self) -> Iterator[Part]:
        """Give the responses block by block, as arrays of the device; consecutive items with all models."""
        xp, dtype = self.device.xp, self.device.kind(self.dtype)
        for part in blocks_of(self.shape, self.device):
            values = self.values.block(part)
            weights = None if self.weights is None else self.weights.block(part)
            if self.is_coded:
                codes, values = values, xp.astype(values, dtype) - 0.5
                if not self.is_complete:
                    weights = xp.astype(codes <= RIGHT, dtype)
                    values = values * weights
            yield Part(part, None, values, weights)

    def take_items(self, items: IntArray | BoolArray) -> "DeviceBlocks":
        """Return the responses to some of the items."""
        index: IntArray = np.arange(self.n_items)[items]
        return replace(
            self,
            values=self.values.take(index),
            weights=None if self.weights is None else self.weights.take(index),
            shape=(index.size, self.shape[1]),
            lower_asymptote=self.lower_asymptote[index],
        )


def numbers_on_device(blocks: Blocks, device: Device) -> DeviceBlocks:
    """Bring responses that are laid out as numbers to a device."""
    shape = (blocks.n_items, blocks.values.shape[1])
    values, weights = Rows(device, blocks.values), None if blocks.weights is None else Rows(device, blocks.weights)
    if _fits(blocks.values.nbytes * (1 if weights is None else 2), device):
        values = values.held(shape, blocks.dtype)
        weights = None if weights is None else weights.held(shape, blocks.dtype)
    return DeviceBlocks(device, values, weights, False, weights is None, shape, blocks.lower_asymptote, blocks.dtype)


def codes_on_device(
    codes: ItemCodes,
    lower_asymptote: FloatArray,
    dtype: np.dtype[np.floating],
    device: Device,
    *,
    is_complete: bool,
) -> DeviceBlocks:
    """Bring right and wrong answers to a device, in a byte each."""
    shape = (codes.n_items, codes.n_models)
    rows = Rows(device, codes)
    if _fits(codes.n_cells, device):
        rows = rows.held(shape, np.dtype(np.uint8))
    return DeviceBlocks(device, rows, None, True, is_complete, shape, lower_asymptote, dtype)


def blocks_of(shape: tuple[int, int], device: Device) -> Iterator[slice]:
    """Cut the items of an array (n_items, n_models) into blocks as large as a device is to have."""
    n_items, n_models = shape
    step = max(1, device.cells_at_once // n_models)
    return (slice(first, min(first + step, n_items)) for first in range(0, n_items, step))


def _fits(n_bytes: int, device: Device) -> bool:
    """Whether responses are to lie on the device."""
    return n_bytes <= SHARE_HELD * device.free_bytes()
