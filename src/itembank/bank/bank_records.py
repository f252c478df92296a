"""`bank.json`, the record of a bank: what the bank is, and the digests of its other files."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from itembank.errors import BankError, DataError, IntegrityError
from itembank.files.atomic import kept_aside
from itembank.files.digests import digest_of_record
from itembank.files.documents import read_json

SCHEMA_VERSION = 1
"""Of banks of right and wrong answers, which every release reads."""

FAMILY_SCHEMA_VERSION = 2
"""Of banks of another family: a release that knows of none must refuse them, not take them for the first kind."""

PUBLISHED_SCHEMA_VERSION = 3
"""Of banks that were published without past models' responses."""

ASIDE_SCHEMA_VERSION = 4
"""Of banks that keep items aside, which count in the score no more."""

FEW_MODELS_SCHEMA_VERSION = 5
"""Of banks that were begun with few past models, or none, and have no item model that was fitted."""

READABLE = (
    SCHEMA_VERSION,
    FAMILY_SCHEMA_VERSION,
    PUBLISHED_SCHEMA_VERSION,
    ASIDE_SCHEMA_VERSION,
    FEW_MODELS_SCHEMA_VERSION,
)
RECORD = "bank.json"
FILES = ("items.parquet", "models.parquet", "responses.parquet", "arrays.safetensors")


def read_record(path: Path) -> dict[str, Any]:
    """Read and check `bank.json` alone."""
    try:
        record = read_json(path / RECORD)
    except FileNotFoundError as error:
        raise BankError(f"{path} is not a bank: it holds no {RECORD}. {where_a_bank_is(path)}") from error
    except (OSError, DataError) as error:
        raise IntegrityError(f"{error} It is the record of a bank: calibrate the bank again.") from error
    version = record.get("schema_version") if isinstance(record, dict) else None
    if version not in READABLE:
        raise BankError(
            f"{path}: schema_version must be one of {READABLE}, got {version!r}. "
            "Read it with the release of itembank that wrote it, or calibrate it again with this one."
        )
    if record.get("record_sha256") != record_digest(record) or not isinstance(record.get("files"), dict):
        raise IntegrityError(f"{path / RECORD} is not what was written with this bank. Calibrate the bank again.")
    return dict(record)


def where_a_bank_is(path: Path) -> str:
    """Say how to come by the bank that is not at `path`."""
    kept = kept_aside(path)
    if kept is None:
        return "Make one with itembank calibrate."
    command = f"mv {shlex.quote(str(kept))} {shlex.quote(str(path))}"
    return f"A command that was to replace it was killed; the bank that stood there is whole. Put it back: {command}"


def record_digest(record: Mapping[str, Any]) -> str:
    """SHA-256 of the record itself, less this very number."""
    return digest_of_record(record, "record_sha256")
