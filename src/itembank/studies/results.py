"""`StudyResult`: what a finished study found, and the folder it lives in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl

from itembank.data.parquet import read_table
from itembank.errors import DataError
from itembank.studies.manifests import COMPARISON, kind_of, read_manifest

ESTIMATES, SUMMARY, PARTS = "estimates.parquet", "summary.parquet", "parts"

COLUMNS = (
    "study",
    "split",
    "repeat",
    "fold",
    "draw",
    "selector",
    "estimator",
    "budget",
    "n_items",
    "model_id",
    "target",
    "truth",
    "estimate",
    "low",
    "high",
    "failure",
    "n_used",
    "effective_items",
    "cost",
    "n_calibration",
    "n_dims",
    "converged",
    "seconds_calibrate",
    "seconds_select",
    "seconds_estimate",
)


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a study found.

    Attributes
    ----------
    estimates : table
        One row for every estimate of every model: `study`, `split`, `repeat`, `fold`, `draw`, `selector`,
        `estimator`, `budget` (items or cost asked for), `n_items` (chosen), `model_id`, `target`, `truth`,
        `estimate`, `low`, `high`, `failure` (why there is no estimate, or empty), `n_used`, `effective_items`,
        `cost`, `n_calibration`, `n_dims`, `converged` and the CPU seconds `seconds_calibrate`, `seconds_select`,
        `seconds_estimate`.
    summary : table
        One row of metrics for each split, selector, estimator, budget and target; see `summarise`.
    manifest : mapping
        The study, fingerprints, versions and seed.
    """

    estimates: pl.DataFrame
    summary: pl.DataFrame
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a finished study from its folder.

        Raises
        ------
        DataError
            When the folder is not a study's, or the study is not finished.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        if kind_of(manifest) != COMPARISON:
            raise DataError(f"{folder} is a {kind_of(manifest)} study. Load it with PredictionResult.")
        if not (folder / ESTIMATES).is_file() or not (folder / SUMMARY).is_file():
            n_done = len(list((folder / PARTS).glob("*.parquet")))
            raise DataError(
                f"the study in {folder} is not finished: {n_done} of {manifest.get('n_folds')} folds are done. "
                "Run the same command again to go on with it."
            )
        try:
            return cls(read_table(folder / ESTIMATES), read_table(folder / SUMMARY), manifest)
        except (DataError, pl.exceptions.PolarsError, OSError) as error:
            raise DataError(
                f"the results in {folder} cannot be read: {error}. Delete them and run it again."
            ) from error
