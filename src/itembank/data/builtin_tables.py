"""The files of the data sets that come with the package."""

import importlib.resources
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError

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
    source = importlib.resources.files("itembank.data").joinpath("builtin_files", file)
    if source.name.startswith(IN_CHECKOUT_ONLY) and not source.is_file():
        raise DataError(
            f"{source.name} must be in the package to read these built-in data, and the wheel leaves it out to stay "
            "small. Install from a checkout or from the source distribution, or take what is there: "
            "load_builtin('bytelms')."
        )
    return source.read_bytes()


def read_builtin_numbers(name: str, part: str, dtype: str, n_rows: int) -> np.ndarray[Any, Any]:
    """Read numbers whose first bytes stand together, then their second ones: this compresses better.

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
    planes = np.frombuffer(lzma.decompress(_content(f"{name}_{part}.xz")), dtype=np.uint8)
    together = np.ascontiguousarray(planes.reshape(np.dtype(dtype).itemsize, -1).T)  # (n_numbers, n_bytes)
    return together.view(dtype).reshape(n_rows, -1)


def packed_numbers(numbers: np.ndarray[Any, Any], dtype: str) -> bytes:
    """Return the content of a file that `read_builtin_numbers` reads; each plane of bytes is a stream of its own."""
    import lzma  # noqa: PLC0415

    how = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 0}
    planes = np.ascontiguousarray(numbers, dtype=dtype).view(np.uint8).reshape(numbers.size, -1).T
    return b"".join(lzma.compress(np.ascontiguousarray(plane).tobytes(), filters=[how]) for plane in planes)


def along_runs(
    log_likelihoods: np.ndarray[Any, Any], n_checkpoints: int, n_bytes: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Differences from the checkpoint before, of models that stand run by run, in an order that compresses well.

    Parameters
    ----------
    log_likelihoods : (n_models, n_choices) of whole numbers
    n_checkpoints : int
        Of each run.
    n_bytes : (n_choices,)
        Length of each choice: differences of choices of one length are about as large.

    Returns
    -------
    (n_checkpoints, n_choices, n_runs)
        The choices from the shortest to the longest. 128 is added, half of what a low byte holds, so that small
        differences of both signs have the same high byte; see `undone`.
    """
    runs = log_likelihoods.reshape(-1, n_checkpoints, n_bytes.size)
    differences = np.diff(runs, axis=1, prepend=0)[:, :, np.argsort(n_bytes, kind="stable")]
    return np.ascontiguousarray(differences.transpose(1, 2, 0)) + _HALF_BYTE


def undone(
    differences: np.ndarray[Any, Any], n_checkpoints: int, n_bytes: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Add up the differences of `along_runs` again, (n_models, n_choices)."""
    steps = differences.reshape(n_checkpoints, n_bytes.size, -1) - _HALF_BYTE
    sums = np.cumsum(steps, axis=0, dtype=differences.dtype)
    in_order = np.empty_like(sums)
    in_order[:, np.argsort(n_bytes, kind="stable")] = sums
    return np.ascontiguousarray(in_order.transpose(2, 0, 1)).reshape(-1, n_bytes.size)
