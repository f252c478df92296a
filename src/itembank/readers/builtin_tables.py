"""The files of the data sets that come with the package."""

import importlib.resources
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError
from itembank.numerics.arrays import IntArray

IN_CHECKOUT_ONLY = ("classifiers_", "bytelms_samples_exact")
"""How the names of files begin that the wheel leaves out, to stay small; ``pyproject.toml`` names them too."""
_HALF_BYTE = 128


def read_builtin_table(name: str, part: str) -> pl.DataFrame:
    """Read one file of a data set, such as the `items` of `classifiers`.

    Raises
    ------
    DataError
        For a file that the wheel leaves out.
    """
    return pl.read_parquet(_content(f"{name}_{part}.parquet"))


def _content(file: str) -> bytes:
    """Return the bytes of a file of the data sets."""
    source = importlib.resources.files("itembank.readers").joinpath("builtin_files", file)
    if source.name.startswith(IN_CHECKOUT_ONLY) and not source.is_file():
        raise DataError(
            f"{source.name} must be in the package to read these built-in data, and the wheel leaves it out to stay "
            "small. Install from a checkout or from the source distribution, or take what is there: "
            "load_builtin('bytelms')."
        )
    return source.read_bytes()


def read_builtin_numbers(name: str, part: str, dtype: str, n_rows: int) -> np.ndarray[Any, Any]:
    """Read numbers from a file whose content `packed_numbers` made.

    Parameters
    ----------
    name, part : str
    dtype : str
        Of numpy, with the order of bytes: '<i2', '<f4'.
    n_rows : int

    Returns
    -------
    (n_rows, n_columns)

    Raises
    ------
    DataError
        Where this Python was built without lzma.
    """
    try:
        import lzma  # noqa: PLC0415 (a Python that was built without it can do all else)
    except ImportError as error:
        raise DataError(
            "the built-in language models need Python's module lzma, and this Python was built without it. Install "
            "the headers of xz (Debian: liblzma-dev) and build Python again, or take another Python."
        ) from error
    content = np.frombuffer(lzma.decompress(_content(f"{name}_{part}.xz")), dtype=np.uint8)
    kept = content.reshape(np.dtype(dtype).itemsize, -1)
    planes = np.empty_like(kept)  # (n_bytes, n_numbers), the low bytes first
    order = np.arange(kept.shape[1])
    for i in reversed(range(len(kept))):
        planes[i, order] = kept[i]
        order = np.argsort(planes[i], kind="stable")
    return np.ascontiguousarray(planes.T).view(dtype).reshape(n_rows, -1)


def packed_numbers(numbers: np.ndarray[Any, Any], dtype: str) -> bytes:
    """Return numbers as bytes in an order that compresses well.

    The low bytes of all numbers stand together, then the next ones. Bytes of one plane stand in the order of the bytes
    above them, since low bytes below equal high bytes are alike. Each plane is a stream of its own.
    """
    import lzma  # noqa: PLC0415

    how = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 0}
    planes = np.ascontiguousarray(numbers, dtype=dtype).view(np.uint8).reshape(numbers.size, -1).T
    above = [np.argsort(plane, kind="stable") for plane in planes[1:]] + [np.arange(numbers.size)]
    return b"".join(
        lzma.compress(plane[order].tobytes(), filters=[how]) for plane, order in zip(planes, above, strict=True)
    )


def as_differences(
    log_likelihoods: np.ndarray[Any, Any], n_checkpoints: int, choices: Sequence[str]
) -> np.ndarray[Any, Any]:
    """Differences between checkpoints, and between choices of the same text: they compress well.

    Parameters
    ----------
    log_likelihoods : (n_models, n_choices) of whole numbers
        The checkpoints of a run stand one after the other.
    n_checkpoints : int
        Of each run.
    choices : (n_choices,)
        Their texts.

    Returns
    -------
    (n_checkpoints, n_choices, n_runs)
        Change since the checkpoint before, less that of the choice before where it has the same text. The choices are
        ordered by length and text: changes grow with the length. 128 is added, half of what a low byte holds, so that
        small differences of both signs have the same high byte. `from_differences` is the inverse.
    """
    order, first = _by_text(choices)
    runs = log_likelihoods.reshape(-1, n_checkpoints, len(choices))
    changes = np.diff(runs, axis=1, prepend=0)[:, :, order].transpose(1, 2, 0)
    own = first == np.arange(first.size)  # the first of its text
    differences = np.diff(changes, axis=1, prepend=0)
    differences[:, own] = changes[:, own]
    return np.ascontiguousarray(differences) + _HALF_BYTE


def from_differences(
    differences: np.ndarray[Any, Any], n_checkpoints: int, choices: Sequence[str]
) -> np.ndarray[Any, Any]:
    """Add up the differences of `as_differences` again, (n_models, n_choices)."""
    order, first = _by_text(choices)
    steps = differences.reshape(n_checkpoints, len(choices), -1) - _HALF_BYTE
    sums = np.cumsum(steps, axis=1, dtype=differences.dtype)
    changes = sums - (sums - steps)[:, first]
    in_order = np.empty_like(changes)
    in_order[:, order] = np.cumsum(changes, axis=0, dtype=differences.dtype)
    return np.ascontiguousarray(in_order.transpose(2, 0, 1)).reshape(-1, len(choices))


def _by_text(choices: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Order of choices by length and text; in that order, the place of the first choice with the same text."""
    texts = np.array(choices)
    order = np.lexsort((texts, np.char.str_len(texts)))
    is_first = np.append(True, texts[order][1:] != texts[order][:-1])
    return order, np.maximum.accumulate(np.where(is_first, np.arange(order.size), 0))
