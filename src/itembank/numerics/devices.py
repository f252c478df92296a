"""Other devices than the processor that NumPy works on: arrays of torch or cupy behind the array API standard.

`array-api-compat` gives the functions of both libraries the names and arguments of the standard (2023.12).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from itembank.errors import MissingDependencyError, ParameterError, missing_package, remedy
from itembank.numerics.arrays import FloatArray

DeviceArray: TypeAlias = Any
"""An array of a device's namespace."""

CELLS_OF_GPU = 2**24
"""Cells of a block on a GPU: thirty launches, of some 10 microseconds each, are little beside them. Ten temporaries
take 670 MB in single precision."""
CELLS_OF_CPU = 2**17
"""Cells of a block on the processor: a block and its temporaries should stay in the cache."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device, and how arrays come there and back.

    Attributes
    ----------
    xp : namespace
        Functions of the array API standard.
    handle : Any
        What its functions take as `device`.
    to_host : function
        Gives an array of the device as one of NumPy.
    free_bytes : function
        Says how much memory is free there.
    cells_at_once : int
        Cells of a block.
    """

    xp: Any
    handle: Any
    to_host: Callable[[DeviceArray], np.ndarray[Any, Any]]
    free_bytes: Callable[[], float]
    cells_at_once: int

    def put(self, array: np.ndarray[Any, Any], dtype: np.dtype[Any] | None = None) -> DeviceArray:
        """Bring an array there, in its own kind of numbers or another."""
        # torch warns of arrays that may not be written, such as those of a mapped file
        ready = np.require(array, dtype, ["C", "W"])
        return self.xp.asarray(ready, dtype=self.kind(ready.dtype), device=self.handle)

    def host(self, array: DeviceArray) -> FloatArray:
        """Bring an array back, as float64."""
        return np.asarray(self.to_host(array), dtype=np.float64)

    def kind(self, dtype: np.dtype[Any]) -> Any:
        """Return what a kind of numbers is called there."""
        return getattr(self.xp, dtype.name)


def open_device(name: str) -> Device:
    """Find a device by its name: 'cpu' (torch's), 'cuda', or 'cuda:1' for the second GPU.

    Raises
    ------
    MissingDependencyError
        When neither torch nor cupy is installed, or not `array-api-compat`.
    ParameterError
        When there is no such device.
    """
    kind, _, number = name.partition(":")
    if kind == "cpu":
        return _torch_device(_library("torch", name), name)
    torch = _installed("torch")
    cupy = None if torch is not None and torch.cuda.is_available() else _installed("cupy")
    library = cupy or torch or _library("torch", name)
    n_found = library.cuda.device_count() if library is torch else _cupy_count(library)
    if int(number or 0) >= n_found:
        found = f"{library.__name__} finds {n_found} of them" if n_found else f"{library.__name__} finds none"
        raise ParameterError(
            f"{remedy('device', '--device')} must be a GPU that is there, got {name!r}: {found}. Leave it out to work "
            "without, or see to the driver and the library's build for CUDA."
        )
    make = _torch_device if library is torch else _cupy_device
    return make(library, f"cuda:{number or 0}")


def _torch_device(torch: ModuleType, name: str) -> Device:
    handle = torch.device(name)
    xp = _library("array_api_compat.torch", name)
    is_cpu = handle.type == "cpu"
    return Device(
        xp,
        handle,
        to_host=lambda array: array.cpu().numpy(),
        free_bytes=lambda: float("inf") if is_cpu else float(torch.cuda.mem_get_info(handle)[0]),
        cells_at_once=CELLS_OF_CPU if is_cpu else CELLS_OF_GPU,
    )


def _cupy_device(cupy: ModuleType, name: str) -> Device:
    handle = cupy.cuda.Device(int(name.partition(":")[2]))
    handle.use()
    return Device(
        _library("array_api_compat.cupy", name),
        handle,
        to_host=cupy.asnumpy,
        free_bytes=lambda: float(handle.mem_info[0]),
        cells_at_once=CELLS_OF_GPU,
    )


def _cupy_count(cupy: ModuleType) -> int:
    """Return how many GPUs cupy finds."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:  # none, or no driver
        return 0


def _installed(library: str) -> ModuleType | None:
    try:
        return import_module(library)
    except ImportError:
        return None


def _library(library: str, device: str) -> ModuleType:
    """Import what a device needs."""
    try:
        return import_module(library)
    except ImportError as error:
        raise _missing(device, error) from error


def _missing(device: str, error: ImportError) -> MissingDependencyError:
    need = "torch" if device == "cpu" else "torch or cupy"
    option = remedy(f"device={device!r}", f"--device {device}")
    return missing_package(f"{option} needs array-api-compat and {need}", "array-api-compat torch", error)
