"""What was read of one log as a file of numbers and JSON, and back: of few classes, without pickle."""

import importlib
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

_READERS = "itembank.readers."
CLASSES = {"itembank.responses.labels:Labels"} | frozenset(
    _READERS + name
    for name in (
        "inspect_runs:InspectRun",
        "inspect_samples:Sample",
        "lm_eval_files:Run",
        "lm_eval_files:SampleFile",
        "lm_eval_options:Options",
        "lm_eval_samples:Metric",
        "lm_eval_samples:Samples",
    )
)
"""Dataclasses that a part may be made of."""
BROKEN = (OSError, ValueError, TypeError, LookupError, EOFError, zipfile.BadZipFile, zlib.error)
"""What reading a file raises that is no part, or is half written."""
_PLAIN = (type(None), bool, int, float, str)


class NotCodedError(Exception):
    """A value is of a kind that has no code."""


def write_part(file: IO[bytes], key: str, part: Any) -> None:
    """Write a part and the key that tells what it is of; `NotCodedError` when the part has no code."""
    arrays: list[NDArray[Any]] = []
    text = json.dumps([key, encoded(part, arrays)])
    tree = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    np.savez(file, tree, *arrays)  # named arr_0, arr_1, ...


def read_part(path: Path, key: str) -> Any:
    """Read a part; one of `BROKEN` when the file is none, or has another key. Zip files tell when a bit has changed."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
        found, tree = json.loads(content["arr_0"].tobytes())
        if found != key:
            raise ValueError("a part of another file.")
        return decoded(tree, content)


def encoded(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Return a value as JSON; whatever is no plain value becomes a list that begins with its kind."""
    if type(value) in _PLAIN:
        return value
    kind = type(value).__name__
    name = f"{type(value).__module__}:{kind}"
    if kind in {"list", "tuple"}:
        code = [encoded(one, arrays) for one in value]
    elif kind == "dict":
        code = [[encoded(key, arrays), encoded(one, arrays)] for key, one in value.items()]
    elif kind == "ndarray" and value.dtype.kind in "bif":
        arrays.append(value)
        code = [f"arr_{len(arrays)}"]
    elif kind == "Series" and value.dtype == pl.String:
        code = [value.name, value.to_list()]
    elif isinstance(value, Path):
        kind, code = "Path", [str(value)]
    elif name in CLASSES:
        kind, code = name, [encoded(getattr(value, one.name), arrays) for one in fields(value)]
    else:
        raise NotCodedError(name)
    return [kind, *code]


def decoded(code: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the value of a code."""
    if not isinstance(code, list):
        return code
    kind, *content = code
    if kind in CLASSES:
        module, _, name = kind.partition(":")
        return getattr(importlib.import_module(module), name)(*(decoded(one, arrays) for one in content))
    return _MADE[kind](content, arrays)


_MADE: Mapping[str, Callable[[list[Any], Mapping[str, NDArray[Any]]], Any]] = {
    "list": lambda content, arrays: [decoded(one, arrays) for one in content],
    "tuple": lambda content, arrays: tuple(decoded(one, arrays) for one in content),
    "dict": lambda content, arrays: {decoded(key, arrays): decoded(one, arrays) for key, one in content},
    "ndarray": lambda content, arrays: arrays[content[0]],
    "Series": lambda content, _: pl.Series(content[0], content[1], dtype=pl.String),
    "Path": lambda content, _: Path(content[0]),
}
