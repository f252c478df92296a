"""The manifest of a study's folder: what it is a study of, so that it is gone on with only as the same one."""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from itembank.data.atomic import SUFFIX, check_destination, write_text
from itembank.data.digests import digest_fits, with_digest
from itembank.data.documents import read_json
from itembank.data.fingerprint import data_fingerprint
from itembank.data.responses import ResponseMatrix
from itembank.errors import DataError, shown
from itembank.studies.specs import StudySpec
from itembank.studies.splits import Fold

SCHEMA_VERSION = 1
FILE_NAME = "manifest.json"
COMPARISON, PREDICTION = "comparison", "prediction"
"""Kinds of studies."""
PACKAGES = ("itembank", "numpy", "scipy", "scikit-learn")


def make_manifest(spec: StudySpec, responses: ResponseMatrix, folds: list[Fold]) -> dict[str, Any]:
    """Return the content of the manifest.

    The fingerprint covers the study, the responses, their costs, and the models of every fold (so that other dates
    or groups make another study).
    """
    divisions = [
        f"{fold.split}/{fold.repeats}/{fold.fold}/".encode() + fold.train.tobytes() + b"/" + fold.test.tobytes()
        for fold in folds
    ]
    return manifest_of(spec.to_dict(), responses, divisions, seed=spec.seed)


def manifest_of(
    study: dict[str, Any], responses: ResponseMatrix, divisions: list[bytes], *, seed: int, kind: str = COMPARISON
) -> dict[str, Any]:
    """Return the content of the manifest of a study of any kind.

    Parameters
    ----------
    study : dict
        All that the numbers depend on, but the responses.
    responses : ResponseMatrix
    divisions : list of bytes
        One a part of the work: what of the data is in it.
    seed : int
    kind : {'comparison', 'prediction'}
    """
    data = data_fingerprint(responses)
    digest = hashlib.sha256(json.dumps([study, data], sort_keys=True, default=str).encode())
    for division in divisions:
        digest.update(division)
    for unit in sorted(responses.costs):
        digest.update(unit.encode() + responses.costs[unit].tobytes())
    versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
    content = {
        "schema_version": SCHEMA_VERSION,
        "fingerprint": digest.hexdigest(),
        "data_fingerprint": data,
        "versions": versions,
        "seed": seed,
        "n_folds": len(divisions),
        "n_models": responses.n_models,
        "n_items": responses.n_items,
        "study": study,
    }
    if kind != COMPARISON:
        content["kind"] = kind
    plain: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return plain


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a study's folder.

    Raises
    ------
    DataError
        When the folder is not a study's.
    """
    path = folder / FILE_NAME
    try:
        content: dict[str, Any] = read_json(path)
    except FileNotFoundError as error:
        raise DataError(f"{folder} is not a study: it has no {FILE_NAME}. Make one with itembank study run.") from error
    except (OSError, DataError) as error:
        raise DataError(f"{error} It cannot be read as a study's manifest.") from error
    if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION:
        raise DataError(f"{path}: schema_version of a study must be {SCHEMA_VERSION}. Run the study again elsewhere.")
    if not digest_fits(content):
        raise DataError(f"{path} is not what was written there. Copy it again, or run the study again elsewhere.")
    return content


def kind_of(manifest: Mapping[str, Any]) -> str:
    """Return the kind of a study."""
    return str(manifest.get("kind", COMPARISON))


def begin(folder: Path, manifest: dict[str, Any], *, resume: bool) -> None:
    """Make a study's folder, or check that the one there is of the same study.

    Raises
    ------
    DataError
        When something else stands there, or a study of another kind, or one that is not to be gone on with.
    """
    if not (folder / FILE_NAME).exists():
        check_destination(folder, is_folder=True)
        # a command that was killed before anything else stood there may have left a temporary file
        if folder.exists() and (not folder.is_dir() or any(one.suffix != SUFFIX for one in folder.iterdir())):
            raise DataError(f"{folder} is there already and is not a study. Give another folder.")
        write_text(folder / FILE_NAME, json.dumps(with_digest(manifest), indent=1, ensure_ascii=False) + "\n")
        return
    known = read_manifest(folder)
    if not resume:
        raise DataError(f"{folder} is a study already. Resume it, or give another folder.")
    for what, names in (("fingerprint", ()), ("versions", PACKAGES)):
        if known.get(what) != manifest[what]:
            raise DataError(f"{folder} is another study: {_difference(known, manifest, what, names)}")


def _difference(known: dict[str, Any], manifest: dict[str, Any], what: str, names: tuple[str, ...]) -> str:
    """Say how two manifests differ and what to do."""
    if what == "versions":
        before, now = known.get("versions", {}), manifest["versions"]
        changed = [
            f"{name} {before.get(name)} -> {now[name]}" for name in (*names, "python") if before.get(name) != now[name]
        ]
        return f"it was begun with other versions, which may give other numbers: {shown(changed)}. Give another folder."
    old, new = known.get("study", {}), manifest["study"]
    changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    if changed:
        return f"{shown(changed)} of the study file changed since it was begun. Give another folder."
    return "the responses, costs, dates or groups changed since it was begun. Give another folder."
