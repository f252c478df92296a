"""Where mapped codes lie, for processes that are to read them from the file themselves."""

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from itembank.errors import DataError
from itembank.numerics.arrays import IntArray
from itembank.responses.item_codes import Codes, ItemCodes


@dataclass(frozen=True, slots=True)
class MappedCodes:
    """Codes of some items in a file.

    Attributes
    ----------
    path : str
        Absolute.
    offset : int
        Bytes before the first row.
    shape : (n_rows, n_models)
        Of rows that lie one after the other, a byte a cell.
    rows : (n_items,) or None
        Which rows the items are; None for all of them in their order.
    """

    path: str
    offset: int
    shape: tuple[int, int]
    rows: IntArray | None = None

    @classmethod
    def of(cls, codes: ItemCodes) -> "MappedCodes | None":
        """Find where codes lie; None where that is in the memory of this process."""
        cells = codes.cells
        mapped = _mapped(cells)
        if mapped is None or not cells.flags.c_contiguous:
            return None
        path = Path(str(mapped.filename)).resolve()
        if mapped.mode == "c" or not path.is_file():  # changes would stay here, or the file is gone
            return None
        if mapped.mode != "r":
            mapped.flush()
        before = cells.__array_interface__["data"][0] - mapped.__array_interface__["data"][0]
        return cls(str(path), mapped.offset + before, (cells.shape[0], cells.shape[1]), codes.rows)

    def open(self) -> ItemCodes:
        """Map the file.

        Raises
        ------
        DataError
            Where this machine does not have the file, or has another one of that name.
        """
        try:
            return ItemCodes(np.memmap(self.path, np.uint8, "r", self.offset, self.shape), self.rows)
        except (OSError, ValueError) as error:
            raise DataError(
                f"workers must read the codes from the file that was mapped, got {error} for {self.path} on "
                f"{socket.gethostname()}. Put the file where all workers have it by this path."
            ) from error


def _mapped(cells: Codes) -> "np.memmap[Any, Any] | None":
    """Return the array that a file was mapped as, of which these cells are a part."""
    found: np.memmap[Any, Any] | None = None
    one: Any = cells
    while isinstance(one, np.ndarray):
        if isinstance(one, np.memmap) and one.filename is not None:
            found = one
        one = one.base
    return found
