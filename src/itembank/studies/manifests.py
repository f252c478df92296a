"""The manifest of a study's folder: what it is a study of, so that only the same study goes on in it."""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from itembank.bank.banks import data_fingerprint
from itembank.errors import DataError, shown
from itembank.files.atomic import SUFFIX, check_destination, write_text
from itembank.files.documents import RECORD_KEY, digest_fits, read_json, with_digest
from itembank.responses.responses import ResponseMatrix

SCHEMA_VERSION = 1
FILE_NAME = "manifest.json"
PACKAGES = ("itembank", "numpy", "scipy")


@dataclass(frozen=True, slots=True)
class StudyManifest:
    """What a study's folder is a study of.

    Attributes
    ----------
    kind : {'comparison', 'prediction'}
    study : mapping
        The spec as plain values: all that the numbers depend on, but the responses.
    fingerprint : str
        Of the study, the responses, their costs, and what of them every unit of the work takes (so that other dates
        or groups make another study).
    data_fingerprint : str
        Of the responses alone.
    versions : mapping of package to version
    seed : int
    n_folds : int
        Units of the work: folds, or partitions of a prediction study.
    n_models, n_items : int
        Of the responses.
    """

    kind: str
    study: Mapping[str, Any]
    fingerprint: str
    data_fingerprint: str
    versions: Mapping[str, str]
    seed: int
    n_folds: int
    n_models: int
    n_items: int

    @classmethod
    def of(
        cls,
        kind: str,
        study: Mapping[str, Any],
        responses: ResponseMatrix,
        *,
        division: Sequence[bytes],
        seed: int,
        n_folds: int,
    ) -> Self:
        """Make the manifest of a study of these responses; `division` says what of them every unit takes."""
        data = data_fingerprint(responses)
        digest = hashlib.sha256(json.dumps([study, data], sort_keys=True, default=str).encode())
        for part in division:
            digest.update(part)
        for unit in sorted(responses.costs):
            digest.update(unit.encode() + responses.costs[unit].tobytes())
        plain = json.loads(json.dumps(study, default=str))
        versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
        return cls(
            kind, plain, digest.hexdigest(), data, versions, seed, n_folds, responses.n_models, responses.n_items
        )


def is_study_folder(path: Path) -> bool:
    """Whether a study, of whichever kind, was begun there."""
    return (path / FILE_NAME).is_file()


def read_manifest(folder: Path) -> StudyManifest:
    """Read the manifest of a study's folder.

    Raises
    ------
    DataError
        When the folder is not a study's.
    """
    path = folder / FILE_NAME
    try:
        content = read_json(path)
    except FileNotFoundError as error:
        raise DataError(f"{folder} is not a study: it has no {FILE_NAME}. Make one with itembank study run.") from error
    except (OSError, DataError) as error:
        raise DataError(f"{error} It cannot be read as a study's manifest.") from error
    if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION:
        raise DataError(f"{path}: schema_version of a study must be {SCHEMA_VERSION}. Run the study again elsewhere.")
    if RECORD_KEY not in content or not digest_fits(content):
        raise DataError(f"{path} is not what was written there. Copy it again, or run the study again elsewhere.")
    names = [field.name for field in fields(StudyManifest)]
    values = {"kind": "comparison", **content}  # the first studies were of one kind, which they did not state
    try:
        return StudyManifest(**{name: values[name] for name in names})
    except KeyError as error:
        raise DataError(
            f"{path} must state {error}, as a study's manifest does. Run the study again elsewhere."
        ) from error


def begin(folder: Path, manifest: StudyManifest, *, resume: bool) -> None:
    """Make a study's folder, or check that the one there is of the same study.

    Raises
    ------
    DataError
        When something else stands there, or a study of another kind, or one that is not to be gone on with.
    """
    if not (folder / FILE_NAME).exists():
        check_destination(folder, is_folder=True)
        # a command that was killed before anything else stood there may have left a temporary file
        if folder.exists() and (not folder.is_dir() or any(path.suffix != SUFFIX for path in folder.iterdir())):
            raise DataError(f"{folder} is there already and is not a study. Give another folder.")
        content = with_digest({"schema_version": SCHEMA_VERSION, **asdict(manifest)})
        write_text(folder / FILE_NAME, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return
    begun = read_manifest(folder)
    if not resume:
        raise DataError(f"{folder} is a study already. Resume it, or give another folder.")
    if (begun.fingerprint, begun.versions) != (manifest.fingerprint, manifest.versions):
        raise DataError(f"{folder} is another study: {_difference(begun, manifest)} Give another folder.")


def _difference(begun: StudyManifest, manifest: StudyManifest) -> str:
    """Say how two manifests differ."""
    if begun.fingerprint == manifest.fingerprint:
        changed = [
            f"{name} {begun.versions.get(name)} -> {now}"
            for name, now in manifest.versions.items()
            if begun.versions.get(name) != now
        ]
        return f"it was begun with other versions, which may give other numbers: {shown(changed)}."
    old, new = begun.study, manifest.study
    changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    if changed:
        return f"{shown(changed)} of the study file changed since it was begun."
    return "the responses, costs, dates or groups changed since it was begun."
