"""`PredictionResult`: what a finished prediction study found, and the folder it lives in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl

from itembank.data.parquet import check_table, read_table
from itembank.errors import DataError
from itembank.studies.manifests import PREDICTION, kind_of, read_manifest
from itembank.studies.prediction.summary import Errors
from itembank.studies.prediction.units import CHOICES, PREDICTIONS, RUNS, SECONDS, TABLES

PARTS = "parts"
TASKS, CURVES, COSTS, AT_COST = "tasks", "curves", "costs", "errors_at_cost"
SUMMARIES = (TASKS, CURVES, COSTS, AT_COST)


@dataclass(frozen=True, slots=True)
class PredictionResult:
    """What a prediction study found.

    Attributes
    ----------
    curves : table
        One row for each number of calibration tasks, set ('interpolation', 'extrapolation'), assessor and budget:
        `mae` and `mae_se`, `cost` and `n_items` on average; see `summarise_curves`.
    costs : table
        What reaching an error costs; see `costs_to_reach`.
    at_cost : table
        The error at given costs; see `errors_at_cost`.
    tasks : table
        `task`, `n_items`, `n_held_out`.
    manifest : mapping
        The study, fingerprints, versions and seed.
    folder : Path
        Where the parts lie.
    """

    curves: pl.DataFrame
    costs: pl.DataFrame
    at_cost: pl.DataFrame
    tasks: pl.DataFrame
    manifest: Mapping[str, Any]
    folder: Path

    @property
    def predictions(self) -> pl.LazyFrame:
        """One row for every prediction.

        `partition`, `n_calibration_tasks`, `assessor`, `budget`, `model_id`, `task`, `is_interpolation`, `truth`,
        `prediction`.
        """
        return scan(self.folder, PREDICTIONS)

    @property
    def runs(self) -> pl.LazyFrame:
        """What each test model was asked: `n_items` and `cost` by partition, tasks, assessor, budget and model."""
        return scan(self.folder, RUNS)

    @property
    def choices(self) -> pl.LazyFrame:
        """Items asked of each task, on average over the test models of a partition."""
        return scan(self.folder, CHOICES)

    @property
    def seconds(self) -> pl.LazyFrame:
        """CPU seconds by partition, number of calibration tasks, assessor (or item model) and work.

        `converged` of the calibrations of item models.
        """
        return scan(self.folder, SECONDS)

    @property
    def errors(self) -> Errors:
        """Sums of errors by cell and partition, from which differences are made."""
        return Errors.of(self.predictions, self.runs)

    @property
    def unit(self) -> str:
        """Unit of the costs; empty for none."""
        return str(self.manifest["study"]["cost"])

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a finished prediction study from its folder.

        Raises
        ------
        DataError
            When the folder is not that of a prediction study, or the study is not finished.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        if kind_of(manifest) != PREDICTION:
            raise DataError(f"{folder} is a {kind_of(manifest)} study. Load it with StudyResult.")
        if not all((folder / f"{name}.parquet").is_file() for name in SUMMARIES):
            n_done = len(list((folder / PARTS).glob("[0-9]*")))
            raise DataError(
                f"the study in {folder} is not finished: {n_done} of {manifest.get('n_folds')} partitions are done. "
                "Run the same command again to go on with it."
            )
        try:
            tables = {name: read_table(folder / f"{name}.parquet") for name in SUMMARIES}
        except (DataError, pl.exceptions.PolarsError, OSError) as error:
            raise DataError(
                f"the results in {folder} cannot be read: {error}. Delete them and run it again."
            ) from error
        return cls(tables[CURVES], tables[COSTS], tables[AT_COST], tables[TASKS], manifest, folder)


def part_path(folder: Path, number: int) -> Path:
    """Return the folder of a partition's tables."""
    return folder / PARTS / f"{number:05d}"


def scan(folder: Path, table: str) -> pl.LazyFrame:
    """Return one table of all partitions, in their order, not yet read."""
    if table not in TABLES:
        raise ValueError(table)
    paths = sorted((folder / PARTS).glob(f"[0-9]*/{table}.parquet"))
    for path in paths:
        check_table(path)
    return pl.scan_parquet(paths)
