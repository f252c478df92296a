"""The engine of every kind of study: each unit once, in parallel, going on where an earlier run stopped.

And what lies in a study's folder: a manifest, so that only the same study goes on there, and sealed tables, which are
refused when they are not what was written.
"""

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, Self, TypeAlias, TypeVar

import polars as pl

from itembank.bank.banks import data_fingerprint
from itembank.errors import DataError, DataWarning, ItembankError, shown, warn
from itembank.files.atomic import SUFFIX, check_destination, replacing_file, replacing_folder, write_text
from itembank.files.documents import (
    BLANK,
    DIGEST_KEY,
    RECORD_KEY,
    digest_fits,
    read_json,
    seal,
    seal_holds,
    with_digest,
)
from itembank.numerics.parallel import in_parallel
from itembank.progress import ProgressCallback
from itembank.responses.opening import read_parquet, read_parquet_metadata
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural

NAME_KEY = "itembank.study_table"


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table, whole or not at all."""
    with replacing_file(path) as temporary:
        write_sealed(table, temporary, path.name)


def write_sealed(table: pl.DataFrame, path: Path, name: str) -> None:
    """Write a table with the name that its file will have, and a digest of the file, in its metadata."""
    table.write_parquet(path, metadata={DIGEST_KEY: BLANK, NAME_KEY: name})
    seal(path)


def read_tables(paths: Sequence[Path]) -> list[pl.DataFrame]:
    """Read tables of a study; `DataError` when one is not what was written, or cannot be read."""
    check_tables(paths)
    return [read_parquet(path) for path in paths]


def check_tables(paths: Sequence[Path]) -> None:
    """Raise `DataError` when a table is not what was written."""
    damaged = [path for path in paths if not is_whole(path)]
    if damaged:
        raise DataError(
            f"{shown(damaged)} cannot be read: not what was written there. Delete what is damaged, and give the "
            "command that ran the study again: it goes on with the rest."
        )


def is_whole(path: Path) -> bool:
    """Whether a table is there, can be read and is what was written under this name."""
    try:
        return seal_holds(path) and read_parquet_metadata(path).get(NAME_KEY) == path.name
    except (pl.exceptions.PolarsError, DataError, OSError):
        return False


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


def read_manifest(folder: Path) -> StudyManifest:
    """Read the manifest of a study's folder."""
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
    """Make a study's folder, or check that the one there is of the same study."""
    if not (folder / FILE_NAME).exists():
        check_destination(folder, is_folder=True)
        # a command that was killed before anything else was there may have left a temporary file
        if folder.exists() and (not folder.is_dir() or any(path.suffix != SUFFIX for path in folder.iterdir())):
            raise DataError(f"{folder} exists and is not a study. Give another folder.")
        content = with_digest({"schema_version": SCHEMA_VERSION, **asdict(manifest)})
        write_text(folder / FILE_NAME, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return
    begun = read_manifest(folder)
    if not resume:
        raise DataError(f"{folder} is a study already. Resume it, or give another folder.")
    if (begun.fingerprint, begun.versions) != (manifest.fingerprint, manifest.versions):
        old, new = begun.study, manifest.study
        apart = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        what = "the responses, costs, dates or groups changed since it was begun."
        if begun.fingerprint == manifest.fingerprint:
            known = begun.versions
            others = [
                f"{name} {known.get(name)} -> {now}"
                for name, now in manifest.versions.items()
                if known.get(name) != now
            ]
            what = f"it was begun with other versions, which may give other numbers: {shown(others)}."
        elif apart:
            what = f"{shown(apart)} of the study file changed since it was begun."
        raise DataError(f"{folder} is another study: {what} Give another folder.")


PARTS = "parts"


@dataclass(frozen=True, slots=True)
class StudyKind:
    """A kind of study, by what its folders hold."""

    name: str  # In manifests
    units: str  # What the units of its work are called: folds, partitions
    # Tables of each unit: a file under `parts` where there is one of them, a folder of files where there are more.
    unit_tables: tuple[str, ...]
    summaries: tuple[str, ...]  # Tables of the finished study
    result: str  # Name of the class that reads its folders

    def part(self, folder: Path, number: int) -> Path:
        """Return where the tables of a unit lie."""
        return folder / PARTS / f"{number:05d}{'.parquet' if len(self.unit_tables) == 1 else ''}"

    def is_whole_part(self, part: Path) -> bool:
        """Whether every table of a unit is there and what was written."""
        return all(is_whole(self._table(part, name)) for name in self.unit_tables)

    def scan(self, folder: Path, name: str) -> pl.LazyFrame:
        """Return one table of all units, in their order, not yet read but known to be whole."""
        paths = [self._table(part, name) for part in sorted((folder / PARTS).glob("[0-9]*"))]
        check_tables(paths)
        return pl.scan_parquet([path.absolute() for path in paths], glob=False)

    def load(self, folder: Path) -> tuple[StudyManifest, list[pl.DataFrame]]:
        """Read the manifest of a finished study, and its summaries."""
        manifest = read_manifest(folder)
        if manifest.kind != self.name:
            result = next((kind.result for kind in KINDS if kind.name == manifest.kind), "another release")
            raise DataError(f"{folder} is a {manifest.kind} study. Load it with {result}.")
        paths = [folder / f"{name}.parquet" for name in self.summaries]
        if not all(path.is_file() for path in paths):
            n_done = len(list((folder / PARTS).glob("[0-9]*")))
            raise DataError(
                f"the study in {folder} is not finished: {n_done} of {manifest.n_folds} {self.units} are done. "
                "Run the same command again to go on with it."
            )
        return manifest, read_tables(paths)

    def _table(self, part: Path, name: str) -> Path:
        return part if len(self.unit_tables) == 1 else part / f"{name}.parquet"


ESTIMATES, SUMMARY = "estimates", "summary"
PREDICTIONS, RUNS, CHOICES, SECONDS = "predictions", "runs", "choices", "seconds"
TASKS, CURVES, COSTS, AT_COST = "tasks", "curves", "costs", "errors_at_cost"

COMPARISON = StudyKind("comparison", "folds", (ESTIMATES,), (ESTIMATES, SUMMARY), "StudyResult")
PREDICTION = StudyKind(
    "prediction",
    "partitions",
    (PREDICTIONS, RUNS, CHOICES, SECONDS),
    (TASKS, CURVES, COSTS, AT_COST),
    "PredictionResult",
)
KINDS = (COMPARISON, PREDICTION)


Unit = TypeVar("Unit")
Tables: TypeAlias = Mapping[str, pl.DataFrame]
"""Tables by name."""


@dataclass(frozen=True, slots=True)
class Study(Generic[Unit]):
    """A study that is ready to run: what each kind of study states, and the engine does not know."""

    kind: StudyKind
    manifest: StudyManifest
    units: Mapping[int, Unit]  # The work in parts that do not depend on each other, in the order in which they are run
    # Returns its tables, those of `kind.unit_tables`. A function of a module's top level with its first arguments
    # (`functools.partial`), so that other processes find it; large arrays in them reach these as memory maps.
    run: Callable[[Unit], Tables]
    # Returns the tables of the finished study, those of `kind.summaries`, from the tables of all units.
    summarise: Callable[[Path], Tables]


def run_in_folder(
    study: Study[Unit], folder: Path, *, n_jobs: int | None, progress: ProgressCallback, resume: bool
) -> None:
    """Run what the folder does not hold yet of a study, and write the tables of the finished study."""
    begin(folder, study.manifest, resume=resume)
    parts = {study.kind.part(folder, number): unit for number, unit in study.units.items()}
    damaged = [part for part in parts if part.exists() and not study.kind.is_whole_part(part)]
    if damaged:
        warn(
            f"{plural(len(damaged), 'part')} of the study {'is' if len(damaged) == 1 else 'are'} damaged "
            f"and run again: {shown(damaged)}.",
            DataWarning,
        )
    left = {part: unit for part, unit in parts.items() if part in damaged or not part.exists()}
    work = [(study.kind, study.run, unit, part) for part, unit in left.items()]
    n_parts, n_done, started = len(parts), len(parts) - len(work), time.monotonic()
    progress(f"{n_done} of {n_parts} {study.kind.units}", n_done / n_parts)
    for count, _ in enumerate(in_parallel(run_and_write, work, n_jobs=n_jobs), start=1):
        seconds = (time.monotonic() - started) / count * (len(work) - count)
        time_left = f"{seconds:.0f} s" if seconds < 90.0 else f"{seconds / 60.0:.0f} min"
        if seconds >= 5400.0:
            time_left = f"{seconds / 3600.0:.1f} h"
        text = f"{n_done + count} of {n_parts} {study.kind.units}, about {time_left} left"
        progress(text, (n_done + count) / n_parts)
    progress("putting results together", 1.0)
    for name, table in study.summarise(folder).items():
        write_table(table, folder / f"{name}.parquet")


def run_and_write(kind: StudyKind, run: Callable[[Unit], Tables], unit: Unit, part: Path) -> None:
    """Run a unit and write its tables, all or none; not what is there from before another worker died."""
    if kind.is_whole_part(part):
        return
    tables = run(unit)
    if len(kind.unit_tables) == 1:
        write_table(tables[kind.unit_tables[0]], part)
        return
    with replacing_folder(part) as temporary:
        for name in kind.unit_tables:
            write_sealed(tables[name], temporary / f"{name}.parquet", f"{name}.parquet")


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Say where in a study an error arose."""
    try:
        yield
    except ItembankError as error:
        raise type(error)(f"{place}: {error}") from error
