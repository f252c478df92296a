"""Arrays and containers out of a Python pickle, without running anything of it.

Unpickling calls what the file names. Here its opcodes are listed (`pickletools.genops`, which executes nothing) and
followed by hand: containers, numbers and text are built, and of names only those that numpy's arrays are made of mean
something. Every other opcode or name is refused. Each opcode costs as much as its bytes, however often it refers to
what came before; an array is put together when it is asked for.
"""

import io
import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from itembank.errors import DataError, quoted
from itembank.files.documents import MOST_BYTES, regular_size
from itembank.numerics.arrays import FloatArray

NUMPY = {
    ("numpy", "dtype"): "dtype",
    ("numpy", "ndarray"): "ndarray",
    **{
        (f"numpy.{core}.{module}", name): name.lstrip("_")
        for core in ("core", "_core")
        for module, name in (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))
    },
}
"""What a pickle may name, and the word for it here."""
KINDS_OF_NUMBERS = re.compile(r"[fiu][1248]|b1")
UNFIT = "its opcodes do not fit together"


@dataclass(frozen=True, slots=True)
class Name:
    """One of the names that are allowed."""

    word: str


@dataclass(slots=True)
class Dtype:
    """A kind of numbers, as 'f8', and the order of their bytes, which a pickle tells later."""

    code: str
    order: str = "="


@dataclass(slots=True)
class Array:
    """Numbers as they lie in the file; a pickle names an array before it fills it."""

    dtype: Any = None
    content: Any = b""
    shape: Any = ()
    is_fortran: Any = False

    @property
    def numbers(self) -> FloatArray:
        """The numbers, in their shape; `ValueError` or `TypeError` where they are none."""
        if not isinstance(self.dtype, Dtype) or not KINDS_OF_NUMBERS.fullmatch(str(self.dtype.code)):
            raise ValueError("its arrays must be of numbers")
        found = np.frombuffer(self.content, dtype=np.dtype(f"{self.dtype.order}{self.dtype.code}"))
        shape = tuple(int(n) for n in self.shape)
        return found.reshape(shape, order="F" if self.is_fortran else "C").astype(np.float64)


def read_pickled(path: Path) -> Any:
    """Read a pickle of containers, numbers, text and numpy arrays, which come as `Array`.

    Raises `DataError` when the file holds anything else, is cut or too long.
    """
    n_bytes = regular_size(path)
    if n_bytes > MOST_BYTES:
        raise DataError(f"{path} must have at most {MOST_BYTES:,} bytes, got {n_bytes:,}. Is it the right file?")
    try:
        return _Reader().follow(path.read_bytes())
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{path} must be a pickle of lists, dictionaries, text, numbers and numpy arrays, and nothing else, got "
            f"one that cannot be read: {quoted(error)}. Nothing in it was run. Take the file as its authors "
            "published it."
        ) from error


class _Reader:
    """What the opcodes of one pickle have built so far."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []  # How many values lay on the stack at each open mark
        self.memo: dict[int, Any] = {}

    def follow(self, content: bytes) -> Any:
        """Build what the pickle says."""
        for opcode, argument, _ in pickletools.genops(io.BytesIO(content)):
            if opcode.name in PUSHED:
                self.stack.append(PUSHED[opcode.name](self, argument))
            elif opcode.name in CHANGED:
                CHANGED[opcode.name](self, argument)
            elif opcode.name not in {"PROTO", "FRAME", "STOP"}:
                raise ValueError(f"it has the opcode {opcode.name}")
        return self.popped(1)[0]

    def popped(self, n_values: int) -> tuple[Any, ...]:
        """Take values off the stack, in the order in which they came."""
        if len(self.stack) - n_values < (self.marks[-1] if self.marks else 0):
            raise ValueError(UNFIT)
        return tuple(self.stack.pop() for _ in range(n_values))[::-1]

    def since_mark(self) -> tuple[Any, ...]:
        """Take all values off the stack that came after the last mark."""
        place = self.marks.pop()
        found = tuple(self.stack[place:])
        del self.stack[place:]
        return found

    def extend(self, values: tuple[Any, ...]) -> None:
        """Add values to the list on the stack."""
        self._top(list).extend(values)

    def update(self, pairs: tuple[Any, ...]) -> None:
        """Add keys and values, in turn, to the dictionary on the stack."""
        if not all(isinstance(key, str | int) for key in pairs[::2]):
            raise ValueError("keys of its dictionaries must be text or whole numbers")
        self._top(dict).update(zip(pairs[::2], pairs[1::2], strict=True))

    def remember(self, place: int) -> None:
        """Keep what lies on the stack for later."""
        self.memo[place] = self.stack[-1]

    def fill(self, state: Any) -> None:
        """Tell an array its numbers, or a kind of numbers the order of bytes."""
        what = self.stack[-1]
        if isinstance(what, Dtype) and isinstance(state, tuple) and state[1] in ("<", ">", "|", "="):
            what.order = state[1]
        elif isinstance(what, Array) and isinstance(state, tuple):
            _, what.shape, what.dtype, what.is_fortran, what.content = state
        else:
            raise ValueError(UNFIT)

    def _top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise ValueError(UNFIT)
        return self.stack[-1]


def _named(module: Any, name: Any) -> Name:
    """Return what a name means. It must be text: anything deeper could take for ever to compare or to show."""
    if not (isinstance(module, str) and isinstance(name, str)) or (module, name) not in NUMPY:
        raise ValueError(f"it names {module}.{name}" if isinstance(module, str) and isinstance(name, str) else UNFIT)
    return Name(NUMPY[module, name])


def _made(what: Any, given: Any) -> Any:
    """Return what one of the allowed names makes of arguments."""
    if not isinstance(what, Name) or not isinstance(given, tuple):
        raise ValueError(UNFIT)
    if what.word == "dtype" and isinstance(given[0], str):
        return Dtype(given[0])
    if what.word == "reconstruct" and given[0] == Name("ndarray"):
        return Array()
    if what.word == "scalar":
        return float(Array(*given).numbers)
    if what.word == "frombuffer":
        content, dtype, shape, order = given
        return Array(dtype, content, shape, order == "F")
    raise ValueError(UNFIT)


PUSHED: dict[str, Callable[[_Reader, Any], Any]] = {
    **dict.fromkeys(
        [
            *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
            *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        ],
        lambda _, value: value,
    ),
    "NONE": lambda *_: None,
    "NEWTRUE": lambda *_: True,
    "NEWFALSE": lambda *_: False,
    "EMPTY_TUPLE": lambda *_: (),
    "EMPTY_LIST": lambda *_: [],
    "EMPTY_DICT": lambda *_: {},
    "TUPLE": lambda reader, _: reader.since_mark(),
    "TUPLE1": lambda reader, _: reader.popped(1),
    "TUPLE2": lambda reader, _: reader.popped(2),
    "TUPLE3": lambda reader, _: reader.popped(3),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda reader, place: reader.memo[place]),
    "GLOBAL": lambda _, names: _named(*names.split(" ")),
    "STACK_GLOBAL": lambda reader, _: _named(*reader.popped(2)),
    "REDUCE": lambda reader, _: _made(*reader.popped(2)),
}
"""Opcodes that lay a value on the stack."""
CHANGED: dict[str, Callable[[_Reader, Any], None]] = {
    "MARK": lambda reader, _: reader.marks.append(len(reader.stack)),
    "APPEND": lambda reader, _: reader.extend(reader.popped(1)),
    "APPENDS": lambda reader, _: reader.extend(reader.since_mark()),
    "SETITEM": lambda reader, _: reader.update(reader.popped(2)),
    "SETITEMS": lambda reader, _: reader.update(reader.since_mark()),
    "MEMOIZE": lambda reader, _: reader.remember(len(reader.memo)),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), lambda reader, place: reader.remember(place)),
    "BUILD": lambda reader, _: reader.fill(*reader.popped(1)),
}
"""Opcodes that change what lies there."""
