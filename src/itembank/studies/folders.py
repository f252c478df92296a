"""What lies where in a study's folder: tables of every unit of the work, and those of the finished study."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from itembank.errors import DataError
from itembank.files.atomic import replacing_folder
from itembank.studies.manifests import StudyManifest, read_manifest
from itembank.studies.sealed_tables import check_tables, is_whole, read_tables, write_sealed, write_table

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

    def write_part(self, tables: Mapping[str, pl.DataFrame], part: Path) -> None:
        """Write the tables of a unit, all or none."""
        if len(self.unit_tables) == 1:
            write_table(tables[self.unit_tables[0]], part)
            return
        with replacing_folder(part) as temporary:
            for name in self.unit_tables:
                write_sealed(tables[name], temporary / f"{name}.parquet", f"{name}.parquet")

    def scan(self, folder: Path, name: str) -> pl.LazyFrame:
        """Return one table of all units, in their order, not yet read but known to be whole."""
        paths = [self._table(part, name) for part in sorted((folder / PARTS).glob("[0-9]*"))]
        check_tables(paths)
        return pl.scan_parquet(paths)

    def load(self, folder: Path) -> tuple[StudyManifest, list[pl.DataFrame]]:
        """Read the manifest of a finished study, and its summaries.

        Raises
        ------
        DataError
            When the folder is not that of a study of this kind, the study is not finished, or a table is not what was
            written.
        """
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
