"""Files of other tools that are not laid out as they must be."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from itembank.errors import DataError, ItembankError


@contextmanager
def laid_out(path: Path, layout: str) -> Iterator[None]:
    """Turn the errors of taking a document apart into a `DataError` that names the file and the layout it must have."""
    try:
        yield
    except ItembankError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: must be laid out as {layout}, got something else in a place ({type(error).__name__}: {error}). "
            "Is it whole, and what that tool writes today?"
        ) from error
