"""What is derived from a bank and worth keeping: in memory, and beside the bank's files when it has a folder."""

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from itembank.data.atomic import replacing_file
from itembank.data.digests import BLANK, seal, seal_holds
from itembank.numerics.arrays import FloatArray

FOLDER = "cache"
STAMP = "made"
MOST_FILES = 200
"""Files kept; beyond that the oldest give way. Each set of answered items leaves one."""
REVISION = 3
"""Of how kept arrays are made; to be raised when a change within a release makes other numbers of the same bank."""

Value = TypeVar("Value")


@dataclass(slots=True)
class BankCache:
    """Results that follow from a bank alone, by key.

    It belongs to one `Bank` object: a changed copy of a bank starts with an empty one.
    Everything kept can be computed again, so nothing here is part of the bank: its id and checksums do not cover it.
    Each file states the digest of its own bytes; one that is absent, not what was written, of the wrong shape, of
    another bank or by another release is simply made anew.
    A folder that cannot be written costs time only.

    Attributes
    ----------
    folder : Path or None
        Of the bank; None for one that only lives in memory.
    bank_id : str
        Files state it: another bank may have taken the folder while this one was at work.
    memory : dict
    """

    folder: Path | None = None
    bank_id: str = ""
    memory: dict[Any, Any] = field(default_factory=dict)

    def remember(self, key: object, make: Callable[[], Value]) -> Value:
        """Return what was made under this key before in this process, or make it."""
        if key not in self.memory:
            self.memory[key] = make()
        result: Value = self.memory[key]
        return result

    def arrays(
        self,
        name: str,
        make: Callable[[], dict[str, FloatArray]],
        *,
        fits: Callable[[dict[str, FloatArray]], bool] = lambda _: True,
    ) -> dict[str, FloatArray]:
        """Return arrays kept under a name (letters, digits, dashes), or make and keep them.

        Parameters
        ----------
        name : str
            States everything the arrays depend on besides the bank.
        make : function
        fits : function
            Whether arrays from a file have the right names and shapes.
        """
        return self.remember(("arrays", name), lambda: self._from_file_or(name, make, fits))

    def write_to(self, folder: Path, bank_id: str) -> None:
        """Write all arrays in memory to a bank's folder, so that a bank that is saved keeps its work."""
        for key, value in self.memory.items():
            match key:
                case ("arrays", str(name)):
                    _write(folder / FOLDER / f"{name}.safetensors", value, bank_id)

    def _from_file_or(
        self, name: str, make: Callable[[], dict[str, FloatArray]], fits: Callable[[dict[str, FloatArray]], bool]
    ) -> dict[str, FloatArray]:
        if self.folder is None:
            return make()
        path = self.folder / FOLDER / f"{name}.safetensors"
        kept = _read(path, self.bank_id)
        if kept is not None and fits(kept):
            return kept
        made = make()
        _write(path, made, self.bank_id)
        return made


def _stamp(bank_id: str) -> str:
    """Say what the arrays of a file follow from besides its name."""
    return f"itembank {importlib.metadata.version('itembank')}, revision {REVISION}, bank {bank_id}"


def _read(path: Path, bank_id: str) -> dict[str, FloatArray] | None:
    """Return the arrays of a file, or None where it is not what was written, or not of this bank and release."""
    try:
        if not seal_holds(path):
            return None
        with safe_open(path, framework="np") as file:
            stamp, _, _ = (file.metadata() or {}).get(STAMP, "").rpartition(" ")
            if stamp != _stamp(bank_id):
                return None
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except (OSError, SafetensorError):
        return None
    # NaN may stand for what is not known; no work ever gives an infinite number
    return None if any(np.isinf(array).any() for array in arrays.values()) else arrays


def _write(path: Path, arrays: dict[str, FloatArray], bank_id: str) -> None:
    """Write the arrays; a bank in a folder that cannot be written stays without."""
    stamp = {STAMP: f"{_stamp(bank_id)} {BLANK}"}
    try:
        with replacing_file(path) as temporary:
            save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, temporary, stamp)
            seal(temporary)
        _drop_oldest(path.parent)
    except OSError:
        return


def _drop_oldest(folder: Path) -> None:
    """Remove the files that were written first, beyond the number to be kept."""
    files = sorted(folder.glob("out-of-fold-*.safetensors"), key=lambda path: path.stat().st_mtime)
    for path in files[: max(len(files) - MOST_FILES, 0)]:
        path.unlink(missing_ok=True)
