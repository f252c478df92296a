"""The Parquet files of the data sets that come with the package."""

import importlib.resources

import polars as pl


def read_builtin_table(name: str, part: str) -> pl.DataFrame:
    """Read one file of a data set, such as the `items` of `classifiers`."""
    source = importlib.resources.files("itembank.data").joinpath("builtin_files", f"{name}_{part}.parquet")
    return pl.read_parquet(source.read_bytes())
