"""`bank.json`, the record of a bank, and banks brought from the Hugging Face Hub into its client's cache.

Of a repository only files that a bank is made of are downloaded, by name and no others, after their sizes were compared
with the record. The client goes on where a download was interrupted, and finds files again without a connection.
"""

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from itembank.errors import BankError, DataError, IntegrityError, shell_word, shown
from itembank.files.atomic import BANK_RECORD, kept_aside
from itembank.files.documents import MOST_BYTES, digest_of_record, read_json
from itembank.files.hub import KIND, HubName, hub_client, hub_errors, is_unreachable, parse_hub_name

SCHEMA_VERSION = 1
FEATURES = {
    "family": "responses of another family than right or wrong",
    "items-aside": "items that count in the score no more",
    "few-models": "no item model that was fitted, since it was begun with few past models or none",
    "known-parameters": "item parameters that others fitted, and no past models",
    "published": "no past models' responses",
}
"""What a bank may have besides right and wrong answers of past models: a release that knows no such thing must refuse
it, not take it for another."""
RECORD = BANK_RECORD
FILES = ("items.parquet", "models.parquet", "responses.parquet", "arrays.safetensors")


def read_record(path: Path) -> dict[str, Any]:
    """Read and check `bank.json` alone."""
    try:
        record = read_json(path / RECORD)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BankError(f"{path} is not a bank: it holds no {RECORD}. {where_a_bank_is(path)}") from error
    except (OSError, DataError) as error:
        raise IntegrityError(f"{error} It is the record of a bank: calibrate the bank again.") from error
    version, features = (
        (record.get("schema_version"), record.get("features")) if isinstance(record, dict) else (None, None)
    )
    if version != SCHEMA_VERSION or not isinstance(features, list):
        raise BankError(
            f"{path}: schema_version must be {SCHEMA_VERSION} with a list of features, got {version!r}. Calibrate the "
            "bank again; one without responses must be published or built again."
        )
    unknown = [one for one in map(str, features) if one not in FEATURES]
    if unknown:
        raise BankError(
            f"{path} has features that this release does not know, {shown(unknown)}. Read it with the release of "
            "itembank that wrote it, or a later one."
        )
    if record.get("record_sha256") != record_digest(record) or not isinstance(record.get("files"), dict):
        raise IntegrityError(f"{path / RECORD} is not what was written with this bank. Calibrate the bank again.")
    return dict(record)


def where_a_bank_is(path: Path) -> str:
    """Say how to come by the bank that is not at `path`."""
    kept = kept_aside(path)
    if kept is None:
        return "Make one with itembank calibrate."
    command = f"mv {shell_word(kept)} {shell_word(path)}"
    return f"A command that was replacing it was killed; the earlier bank is whole. Put it back: {command}"


def record_digest(record: Mapping[str, Any]) -> str:
    """SHA-256 of the record itself, less this very number."""
    return digest_of_record(record, "record_sha256")


BESIDE = ("README.md", "selection.json", "selected.csv", "parameters.csv", "accuracy.png")
"""Files that may lie beside a bank's own. Code is not among them: nothing that a stranger could run is fetched."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CACHE = re.compile(r"cache/[a-z0-9-]{1,80}\.safetensors")


def pull(place: str | Path) -> tuple[Path, HubName]:
    """Bring the bank of a name (``hf:owner/name@revision``) onto this machine, or find it here.

    Returns its folder in the client's cache, and the name with the commit that was pulled as its revision.
    """
    name = parse_hub_name(place)
    folder = None
    if _COMMIT.fullmatch(name.revision or ""):  # a commit never changes: a whole copy here needs no question to the Hub
        with contextlib.suppress(BankError), hub_errors(name, "found"):
            folder = _snapshot(name)
    if folder is None or not all((folder / one).is_file() for one in (RECORD, *FILES)):
        with hub_errors(name, "pulled"):
            sizes = _listed(name)
            if sizes is None:
                folder = _snapshot(name)
            else:  # only what the record says of their lengths lets the other files come
                _check_sizes(name, read_record(_snapshot(name, [RECORD])), sizes)
                folder = _snapshot(name, [one for one in sizes if is_file_of_bank(one)])
    return folder, HubName(name.repository, folder.name)


def _listed(name: HubName) -> dict[str, int] | None:
    """Return the size of every file of the repository; None where the Hub cannot be reached."""
    try:
        found = (
            hub_client().HfApi().repo_info(name.repository, repo_type=KIND, revision=name.revision, files_metadata=True)
        )
    except Exception as error:
        if is_unreachable(error):
            return None
        raise
    sizes = {str(file.rfilename): int(file.size or 0) for file in found.siblings or []}
    astray = [
        one
        for one in sizes
        if one.startswith("/") or ".." in PurePosixPath(one).parts or "\\" in one or "\0" in one or one[1:2] == ":"
    ]
    if astray:
        raise IntegrityError(
            f"{name}: files of a bank must lie in its folder, got {shown(astray)}. Do not use this repository."
        )
    if RECORD not in sizes:
        raise BankError(f"{name} is not a bank: the repository holds no {RECORD}. Push one with itembank push.")
    if sizes[RECORD] > MOST_BYTES:
        raise IntegrityError(f"{name}: {RECORD} must have at most {MOST_BYTES:,} bytes, got {sizes[RECORD]:,}.")
    return sizes


def is_file_of_bank(path: str) -> bool:
    """Whether a file of a repository, or of a bank's folder, is one that a bank may have."""
    return path in {*BESIDE, RECORD, *FILES} or _CACHE.fullmatch(path) is not None


def _check_sizes(name: HubName, record: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Refuse files that are not as long as the record says before any of them is downloaded."""
    named = {one: about.get("bytes") if isinstance(about, dict) else None for one, about in record["files"].items()}
    wrong = [one for one in FILES if one not in sizes or sizes[one] != named.get(one)]
    if wrong:
        raise IntegrityError(
            f"{name}: files of the bank must be as long as its record says, and {shown(wrong)} are not, or are "
            "missing. Its owner must push the whole bank again."
        )
    total = sum(size for one, size in sizes.items() if is_file_of_bank(one))
    most = 20 * 2**30  # the largest leaderboard that there is takes a fiftieth of it
    if total > most:
        raise IntegrityError(
            f"{name}: a bank must have at most {most:,} bytes to be pulled, got {total:,}. Is it a bank?"
        )


def _snapshot(name: HubName, files: list[str] | None = None) -> Path:
    """Download these files and return their folder; without any, find what is on this machine."""
    return Path(
        hub_client().snapshot_download(
            name.repository,
            repo_type=KIND,
            revision=name.revision,
            allow_patterns=[RECORD, *FILES] if files is None else files,
            local_files_only=files is None,
        )
    )
