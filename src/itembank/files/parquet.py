"""Reading Parquet of strangers, at some of which Polars panics and tells the terminal so."""

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import ParamSpec, TypeVar

import polars as pl

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_STANDARD_ERROR = 2
_one_at_a_time = threading.Lock()


def quiet(read: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a reader that raises an error of damaged files where Polars panics."""

    @wraps(read)
    def reader(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        try:
            with _without_panic_on_terminal():
                return read(*arguments, **options)
        except pl.exceptions.PanicException as error:
            raise pl.exceptions.ComputeError("it is damaged. Copy it again.") from error

    return reader


@contextmanager
def _without_panic_on_terminal() -> Iterator[None]:
    """Hold back what is written to standard error; give it back unless it tells of a panic."""
    with _one_at_a_time, tempfile.TemporaryFile() as held:
        try:
            before = os.dup(_STANDARD_ERROR)
        except OSError:  # there is no standard error
            yield
            return
        is_panic = False
        try:
            with suppress(OSError, ValueError, AttributeError):
                sys.stderr.flush()
            os.dup2(held.fileno(), _STANDARD_ERROR)
            yield
        except pl.exceptions.PanicException:
            is_panic = True
            raise
        finally:
            os.dup2(before, _STANDARD_ERROR)
            os.close(before)
            held.seek(0)
            if not is_panic:
                os.write(_STANDARD_ERROR, held.read())


read_parquet = quiet(pl.read_parquet)
read_parquet_schema = quiet(pl.read_parquet_schema)
read_parquet_metadata = quiet(pl.read_parquet_metadata)
