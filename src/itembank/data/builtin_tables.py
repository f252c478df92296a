"""The Parquet files of the data sets that come with the package."""

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
    source = importlib.resources.files("itembank.data").joinpath("builtin_files", f"{name}_{part}.parquet")
    if source.name.startswith(IN_CHECKOUT_ONLY) and not source.is_file():
        raise DataError(
            f"{source.name} must be in the package to read these built-in data, and the wheel leaves it out to stay "
            "small. Install from a checkout or from the source distribution, or take what is there: "
            "load_builtin('bytelms')."
        )
    return pl.read_parquet(source.read_bytes())


def read_builtin_numbers(name: str, part: str, dtype: str, n_rows: int) -> np.ndarray[Any, Any]:
    """Read numbers whose bytes stand in columns of their own, which compresses better, (n_rows, n_columns).

    Parameters
    ----------
    name, part : str
    dtype : str
        Of numpy, with the order of bytes: '<i2', '<f4'.
    n_rows : int
    """
    planes = read_builtin_table(name, part).to_numpy()  # (n_numbers, n_bytes)
    return np.ascontiguousarray(planes).view(dtype).reshape(n_rows, -1)


def byte_planes(numbers: np.ndarray[Any, Any], dtype: str) -> pl.DataFrame:
    """Lay numbers out as `read_builtin_numbers` reads them."""
    planes = np.ascontiguousarray(numbers, dtype=dtype).view(np.uint8).reshape(numbers.size, -1)
    return pl.DataFrame({f"byte_{k}": plane for k, plane in enumerate(planes.T)})


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
