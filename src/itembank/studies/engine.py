"""The engine of every kind of study: each unit of the work once, in parallel, going on where an earlier run stopped."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import polars as pl

from itembank.errors import DataWarning, ItembankError, shown, warn
from itembank.numerics.parallel import in_parallel
from itembank.progress import ProgressCallback
from itembank.studies.folders import StudyKind
from itembank.studies.manifests import StudyManifest, begin
from itembank.studies.sealed_tables import write_table

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
    """Run what the folder does not hold yet of a study, and write the tables of the finished study.

    Raises
    ------
    DataError
        When `folder` is something else.
    """
    begin(folder, study.manifest, resume=resume)
    parts = {study.kind.part(folder, number): unit for number, unit in study.units.items()}
    damaged = [part for part in parts if part.exists() and not study.kind.is_whole_part(part)]
    if damaged:
        warn(f"{len(damaged)} parts of the study are damaged and are run again: {shown(damaged)}.", DataWarning)
    left = {part: unit for part, unit in parts.items() if part in damaged or not part.exists()}
    work = [(study.kind, study.run, unit, part) for part, unit in left.items()]
    n_parts, n_done, started = len(parts), len(parts) - len(work), time.monotonic()
    progress(f"{n_done} of {n_parts} {study.kind.units}", n_done / n_parts)
    for count, _ in enumerate(in_parallel(run_and_write, work, n_jobs=n_jobs), start=1):
        seconds = (time.monotonic() - started) / count * (len(work) - count)
        text = f"{n_done + count} of {n_parts} {study.kind.units}, {_duration(seconds)} left"
        progress(text, (n_done + count) / n_parts)
    progress("putting results together", 1.0)
    for name, table in study.summarise(folder).items():
        write_table(table, folder / f"{name}.parquet")


def run_and_write(kind: StudyKind, run: Callable[[Unit], Tables], unit: Unit, part: Path) -> None:
    """Run a unit and write its tables, all or none; not what is there from before another worker died."""
    if not kind.is_whole_part(part):
        kind.write_part(run(unit), part)


@contextmanager
def errors_at(place: str) -> Iterator[None]:
    """Say where in a study an error arose."""
    try:
        yield
    except ItembankError as error:
        raise type(error)(f"{place}: {error}") from error


def _duration(seconds: float) -> str:
    """Say a time in the unit a person would."""
    if seconds < 90.0:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60.0:.0f} min" if seconds < 5400.0 else f"about {seconds / 3600.0:.1f} h"
