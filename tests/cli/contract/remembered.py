"""Work that does not depend on the option tried: done once for the same input, and taken from memory afterwards."""

import contextlib
import dataclasses
import warnings
from pathlib import Path

import numpy as np

import itembank
from itembank.bank import bank_files
from itembank.calibration.calibration_specs import METHODS
from itembank.progress import silent
from itembank.readers import read
from tests.attacks.running import import_everything


class Remembered:
    """Fits of item models by their whole input, banks by their place, and rows of files by place and way of reading.

    What calls write is not remembered, and no progress is told of, so that every call sounds alike.
    """

    def __init__(self, output):
        self._output, self._found = output, {}
        self._load_bank, self._read_rows = bank_files.load_bank, read.read_rows
        self._kernel_of = METHODS.kernel

    def install(self, patch):
        import_everything()  # a module that is first imported later would keep what is patched
        patch.setattr(itembank, "load_bank", self._bank)  # before what it is looked up in, else this would be kept
        patch.setattr(bank_files, "load_bank", self._bank)
        patch.setattr(read, "read_rows", self._rows)
        patch.setattr(METHODS, "kernel", lambda spec: lambda data, _spec, *, progress: self._fit(data, spec))

    @contextlib.contextmanager
    def put_aside(self):
        found, self._found = self._found, {}
        yield
        self._found = found

    def _bank(self, path):
        return self._once(("bank", path), [path], lambda: self._load_bank(path))

    def _rows(self, found, spec, *, item_ids=None, **_known):
        paths = [path for some in found.paths.values() for path in some]
        key = ("rows", tuple(paths), content(spec), tuple(item_ids or ()))
        return self._once(key, paths, lambda: self._read_rows(found, spec, item_ids=item_ids, progress=silent))

    def _fit(self, data, spec):
        key = ("fit", type(spec), content(spec), content(data))
        return self._once(key, [], lambda: self._kernel_of(spec)(data, spec, progress=silent))

    def _once(self, key, paths, work):
        """Result of some work on files, with its warnings said anew each time."""
        if any(self._output in Path(path).parts for path in paths):
            return work()
        if key not in self._found:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                self._found[key] = work(), told
        result, told = self._found[key]
        for one in told:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        return result


def content(value):
    """Everything in a value made of dataclasses and arrays, to tell it from others."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if dataclasses.is_dataclass(value):
        return tuple(content(getattr(value, one.name)) for one in dataclasses.fields(value))
    return repr(value)
