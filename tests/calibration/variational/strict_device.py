"""The strictest namespace of the array API standard as a device: it offers what the standard has and nothing else."""

import array_api_strict
import numpy as np

from itembank.numerics.devices import Device


def strict_device(*, cells_at_once=40, free_bytes=float("inf")):
    return Device(
        array_api_strict,
        array_api_strict.Device("device1"),  # not the one that its functions take when none is named
        to_host=lambda array: np.from_dlpack(array.to_device(array_api_strict.Device("CPU_DEVICE"))),
        free_bytes=lambda: free_bytes,
        cells_at_once=cells_at_once,
    )
