"""`StudyResult` and `PredictionResult`: what finished studies found, read from their folders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl

from itembank.errors import ParameterError, shown
from itembank.tabular import Tabular
from itembank_studies.engine import CHOICES, COMPARISON, PREDICTION, PREDICTIONS, RUNS, SECONDS, StudyManifest
from itembank_studies.prediction.error_curves import differences, sum_errors
from itembank_studies.prediction.prediction_spec import Assessor


@dataclass(frozen=True, slots=True, repr=False)
class StudyResult(Tabular):
    """What a study found.

    Attributes
    ----------
    estimates : table
        One row for every estimate of every model: `study`, `split`, `repeat`, `fold`, `draw`, `selector`,
        `estimator`, `budget` (items or cost asked for), `n_items` (chosen), `model_id`, `target`, `truth`,
        `estimate`, `low`, `high`, `misfit` and `typicality` of the model (`Typicality`; NaN where intervals
        are not calibrated), `failure` (why there is no estimate, or empty), `n_used`, `effective_items`, `cost`,
        `n_calibration`, `n_dims`, `converged` and the CPU seconds `seconds_calibrate`, `seconds_select`,
        `seconds_estimate`.
    summary : table
        One row of metrics for each split, selector, estimator, budget and target; see `summarise`.
    manifest : StudyManifest
        The study, fingerprints, versions and seed.
    """

    estimates: pl.DataFrame
    summary: pl.DataFrame
    manifest: StudyManifest

    @property
    def table(self) -> pl.DataFrame:
        """The summary."""
        return self.summary

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return float(self.manifest.study["level"])

    @property
    def budget_unit(self) -> str:
        """Unit of the budgets where they are amounts of a cost; empty if they are numbers of items."""
        budget = self.manifest.study["budget"]
        return "" if budget is None else str(budget["cost"])

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a finished study from its folder.

        Raises
        ------
        DataError
            When the folder is not a study's, the study is not finished, or a table is not what was written.
        """
        manifest, (estimates, summary) = COMPARISON.load(Path(folder))
        return cls(estimates, summary, manifest)


@dataclass(frozen=True, slots=True, repr=False)
class PredictionResult(Tabular):
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
    manifest : StudyManifest
        The study, fingerprints, versions and seed.
    folder : Path
        Where the parts lie.
    """

    curves: pl.DataFrame
    costs: pl.DataFrame
    at_cost: pl.DataFrame
    tasks: pl.DataFrame
    manifest: StudyManifest
    folder: Path

    @property
    def table(self) -> pl.DataFrame:
        """The curves."""
        return self.curves

    @property
    def predictions(self) -> pl.LazyFrame:
        """One row for every prediction.

        `partition`, `n_calibration_tasks`, `assessor`, `budget`, `model_id`, `task`, `is_interpolation`, `truth`,
        `prediction`.
        """
        return PREDICTION.scan(self.folder, PREDICTIONS)

    @property
    def runs(self) -> pl.LazyFrame:
        """What each test model was asked: `n_items` and `cost` by partition, tasks, assessor, budget and model."""
        return PREDICTION.scan(self.folder, RUNS)

    @property
    def choices(self) -> pl.LazyFrame:
        """Items asked of each task, on average over the test models of a partition."""
        return PREDICTION.scan(self.folder, CHOICES)

    @property
    def seconds(self) -> pl.LazyFrame:
        """CPU seconds by partition, number of calibration tasks, assessor (or item model) and work.

        `converged` of the calibrations of item models.
        """
        return PREDICTION.scan(self.folder, SECONDS)

    @property
    def errors(self) -> pl.DataFrame:
        """Sums of errors by cell and partition, from which `differences` are made; see `sum_errors`."""
        return sum_errors(self.predictions, self.runs)

    @property
    def assessors(self) -> tuple[Assessor, ...]:
        """The assessors of the study."""
        return tuple(Assessor(**choices) for choices in self.manifest.study["assessors"])

    @property
    def unit(self) -> str:
        """Unit of the costs; empty for none."""
        return str(self.manifest.study["cost"])

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a finished prediction study from its folder.

        Raises
        ------
        DataError
            When the folder is not that of a prediction study, the study is not finished, or a table is not what was
            written.
        """
        folder = Path(folder)
        manifest, (tasks, curves, costs, at_cost) = PREDICTION.load(folder)
        return cls(curves, costs, at_cost, tasks, manifest, folder)


def assessors_by_dims(result: PredictionResult, names: Sequence[str] = ()) -> dict[str, int]:
    """Return the number of abilities of each assessor that is compared, rising from one."""
    item_models: Mapping[str, Mapping[str, Any]] = result.manifest.study["item_models"]
    found = {}
    for one in result.assessors:
        choice = item_models.get(one.predictor)
        is_plain = choice is not None and (choice["item_model"] in {"mirt", ""} or choice["n_dims"] == 1)
        if one.name in names or (not names and one.paradigm == "prediction" and is_plain):
            found[one.name] = 0 if choice is None else int(choice["n_dims"])
    ordered = dict(sorted(found.items(), key=lambda pair: pair[1]))
    values = list(ordered.values())
    if not values or values[0] != 1 or len(set(values)) < max(len(values), 2):
        raise ParameterError(
            "assessors must have item models of one, and of other numbers of abilities, each its own, got "
            f"{shown([f'{name} ({n})' for name, n in ordered.items()])}. Name them (--assessor), one of each."
        )
    return ordered


def percent_of_one(
    result: PredictionResult,
    dims: Mapping[str, int],  # The first has one
) -> pl.DataFrame:
    """Return the change of each assessor's error against that with one ability, in percent.

    Returns table: `n_calibration_tasks`, `set`, `budget`, `n_dims`, `percent`, `percent_se`.
    """
    reference = next(iter(dims))
    table = differences(result.errors, reference).filter(pl.col("assessor").is_in(list(dims)))
    return table.select(
        "n_calibration_tasks",
        "set",
        "budget",
        n_dims=pl.col("assessor").replace_strict(dict(dims), return_dtype=pl.Int64),
        percent=100.0 * (pl.col("ratio") - 1.0),
        percent_se=100.0 * pl.col("ratio_se"),
    ).sort("n_calibration_tasks", "set", "budget", "n_dims")
