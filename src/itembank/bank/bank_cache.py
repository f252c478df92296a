"""What is derived from a bank and worth keeping: in memory, in the user's cache folder, and beside the bank's files."""

import contextlib
import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from itembank.errors import ParameterError
from itembank.files.atomic import drop_oldest, replacing_file, user_cache_folder
from itembank.files.documents import BLANK, seal, seal_holds
from itembank.numerics.arrays import FloatArray

FOLDER = "cache"
STAMP = "made"
REVISION = 13
"""Of how kept arrays are made; to be raised when a change within a release makes other numbers of the same bank."""

Value = TypeVar("Value")
Arrays: TypeAlias = dict[str, FloatArray]


@dataclass(slots=True)
class BankCache:
    """Results that follow from a bank alone, by key: the one place of kept work.

    It belongs to one `Bank` object: a changed copy of a bank starts with an empty one.
    Everything kept can be computed again, so nothing here is part of the bank: its id and checksums do not cover it.
    Each file states the digest of its own bytes; one that is absent, not what was written, of the wrong shape, of
    another bank or by another release is simply made anew. Files are read from the bank's folder, where they travel
    with it, and from the user's cache folder. They are written to the user's alone, so that a bank that many share
    stays as it is, and to the bank's when that is asked for (`keep_in_bank`, `save_bank`).
    """

    folder: Path | None = None  # Of the bank; None for one that only lives in memory
    bank_id: str = ""  # Files state it: another bank may have taken the folder while this one was at work
    # Where this bank's files lie in the user's cache folder; None for a bank that only lives in memory.
    user_folder: Path | None = None
    source: str = ""  # Name of a ready bank, or of one pulled from the Hub, with its commit
    # Begins the names of files of a bank that follows from another one, among whose files they lie (`of_part`).
    prefix: str = ""
    memory: dict[Any, Any] = field(default_factory=dict)

    def share(self, other: "BankCache") -> None:
        """Hold what another cache holds, in memory and in files: for a copy of a bank of the same numbers."""
        for one in fields(self):
            setattr(self, one.name, getattr(other, one.name))

    def of_part(self, name: str) -> "BankCache":
        """Return the cache of a bank that follows from this one; its files lie among those of this bank.

        `name` states everything that the other bank depends on besides this one (`cache_name`).
        """
        # it must not hold this cache, which holds it: neither would ever be freed, nor sent alone to another process
        return self.remember(("part", name), lambda: replace(self, prefix=f"{self.prefix}{name}-", memory={}))

    def remember(self, key: object, make: Callable[[], Value]) -> Value:
        """Return what was made under this key before in this process, or make it."""
        if key not in self.memory:
            self.memory[key] = make()
        result: Value = self.memory[key]
        return result

    @contextlib.contextmanager
    def forgetting(self) -> Iterator[None]:
        """Find what was kept before, and keep nothing of what is found inside."""
        before, folder, self.user_folder = set(self.memory), self.user_folder, None
        try:
            yield
        finally:
            self.user_folder = folder
            for key in set(self.memory) - before:
                del self.memory[key]

    def arrays(
        self, name: str, make: Callable[[], Arrays], *, fits: Callable[[Arrays], bool] = lambda _: True
    ) -> Arrays:
        """Return arrays kept under a name (letters, digits, dashes), or make and keep them.

        The name states everything that they depend on besides the bank (`cache_name`); `fits` says whether arrays from
        a file have the right names and shapes.
        """

        def find_or_make() -> Arrays:
            in_bank = None if self.folder is None else self.folder / FOLDER
            for folder in (in_bank, self.user_folder):
                found = None if folder is None else _read(folder / self._file_name(name), self.bank_id)
                if found is not None and fits(found):
                    return found
            made = make()
            if self.user_folder is not None:
                with contextlib.suppress(OSError):  # a folder that cannot be written costs time only
                    _write(self.user_folder / self._file_name(name), made, self.bank_id)
                    drop_oldest()
            return made

        return self.remember(("arrays", name), find_or_make)

    def keep_in_bank(self) -> None:
        """Write all arrays in memory to the bank's own folder, where the next who gets the bank finds them."""
        if self.folder is None:
            raise ParameterError(
                "the bank lives in memory only. Write it with bank.save(path), which keeps this work, too."
            )
        if self.source:
            raise ParameterError(
                f"{self.source} is a copy of what was published, and stays so. Copy it into a folder of yours "
                "(of the Hub: itembank pull) and prepare that."
            )
        try:
            self.write_to(self.folder, self.bank_id)
        except OSError as error:
            raise ParameterError(
                f"{self.folder} cannot be written ({error}). What was found is kept in {user_cache_folder()}; to send "
                "it along with the bank, copy the bank to a folder that you can write."
            ) from error

    def write_to(self, folder: Path, bank_id: str) -> None:
        """Write all arrays in memory to a bank's folder, so that a bank that is saved keeps its work."""
        for key, value in self.memory.items():
            match key:
                case ("arrays", str(name)):
                    _write(folder / FOLDER / self._file_name(name), value, bank_id)
                case ("part", str()):
                    value.write_to(folder, bank_id)

    def _file_name(self, name: str) -> str:
        return f"{self.prefix}{name}.safetensors"


def cache_name(kind: str, *depends_on: object) -> str:
    """Name arrays after what they depend on besides the bank: arrays count by their bytes, all else by its JSON.

    `kind` begins the name. A spec comes as the plain data of its table (`MethodTable.to_plain`), so that its class may
    be renamed; arrays are values of their own only.
    """
    others = [part for part in depends_on if not isinstance(part, np.ndarray)]
    digest = hashlib.sha256(json.dumps(others, sort_keys=True, default=_plain).encode())
    for part in depends_on:
        if isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes() + b"|")
    return f"{kind}-{digest.hexdigest()[:20]}"


def _plain(part: Any) -> Any:
    """Return what JSON has no form for as a number, or as text."""
    if is_dataclass(part):
        raise TypeError(f"a spec must come as plain data with the name of its method, got {part!r}.")
    return part.tolist() if isinstance(part, np.generic | np.ndarray) else str(part)


def _stamp(bank_id: str) -> str:
    """Say what the arrays of a file follow from besides its name."""
    return f"itembank {importlib.metadata.version('itembank')}, revision {REVISION}, bank {bank_id}"


def _read(path: Path, bank_id: str) -> Arrays | None:
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


def _write(path: Path, arrays: Arrays, bank_id: str) -> None:
    stamp = {STAMP: f"{_stamp(bank_id)} {BLANK}"}
    with replacing_file(path) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, temporary, stamp)
        seal(temporary)
