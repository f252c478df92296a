"""The Parquet files of the data sets that come with the package."""

import importlib.resources
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import DataError

IN_CHECKOUT_ONLY = ("classifiers_", "bytelms_samples_exact")
"""How the names of files begin that the wheel leaves out, to stay small; ``pyproject.toml`` names them too."""


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


def along_runs(log_likelihoods: np.ndarray[Any, Any], n_checkpoints: int) -> np.ndarray[Any, Any]:
    """Differences from the checkpoint before, of models that stand run by run, (n_models, n_columns); see `undone`."""
    runs = log_likelihoods.reshape(-1, n_checkpoints, log_likelihoods.shape[1])
    return np.diff(runs, axis=1, prepend=0).reshape(log_likelihoods.shape)


def undone(differences: np.ndarray[Any, Any], n_checkpoints: int) -> np.ndarray[Any, Any]:
    """Add up the differences of `along_runs` again."""
    runs = differences.reshape(-1, n_checkpoints, differences.shape[1])
    return np.cumsum(runs, axis=1, dtype=differences.dtype).reshape(differences.shape)
