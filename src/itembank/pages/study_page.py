"""The page of a study: which method came closest with how many answers, and whether intervals held what they claim."""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import ParameterError, shown
from itembank.pages.blocks import Answer, Answers, Block, Caution, Column, Pair, Section, Table, Text
from itembank.pages.render import Page
from itembank.pages.study_charts import (
    METHOD,
    BestMethod,
    StudyNumbers,
    coverage_chart,
    error_chart,
    ranks_chart,
    size_words,
    spread_chart,
    width_chart,
)
from itembank.pages.theme import count, level_words, percent, plural
from itembank.responses.score_names import OVERALL
from itembank.studies.engine import StudyManifest
from itembank.studies.results import StudyResult

TOO_NARROW = 0.03
"""How far below their level intervals may hold before a reader is told."""
MOST_ANSWERS = 4


def study_page(result: StudyResult, *, target: str = OVERALL, title: str = "", command: str = "") -> Page:
    """Return the page of a study of selections and estimates.

    Raises
    ------
    ParameterError
        For a target that the study has not, or one without any estimate.
    """
    known = result.summary["target"].unique(maintain_order=True).to_list()
    if target not in known:
        raise ParameterError(f"target must be one of {shown(known)}, got {target!r}.")
    numbers = StudyNumbers.of(result, target)
    best = [one for one in map(numbers.best, numbers.splits) if one is not None]
    if not best:
        raise ParameterError(f"a page of a study needs estimates of {target!r}; every one of them failed.")
    return Page(
        title=title or f"Study {result.manifest.study['name']}",
        kind="Study",
        lead=(Text(_sentence(numbers, best[0], target)), _answers(numbers, best), *_cautions(numbers, best)),
        sections=tuple(_sections(result, numbers, best, target)),
        provenance=manifest_provenance(result.manifest),
        command=command,
    )


def _sentence(numbers: StudyNumbers, best: BestMethod, target: str) -> str:
    """Say what was best where."""
    size = size_words(numbers, numbers.size)
    tied = (
        f" {plural(len(best.tied), 'other method')} cannot be told from it, model by model: {', '.join(best.tied[:3])}"
        f"{' and more' if len(best.tied) > 3 else ''}."
        if best.tied
        else ""
    )
    worse = f" The next, {best.next_method}, errs by {best.next_error:.2f} points." if best.next_method else ""
    return (
        f"With {size}, {best.method} came closest to the true {target} scores of models left out (split {best.split}): "
        f"{best.error:.2f} points off on average, ± {best.error_se:.2f} over {plural(best.n_models, 'model')}."
        f"{tied}{worse}"
    )


def _answers(numbers: StudyNumbers, best: list[BestMethod]) -> Answers:
    made = []
    for one in best[:MOST_ANSWERS]:
        level = level_words(numbers.level)
        held = f"; {level} intervals held {percent(one.coverage)}" if np.isfinite(one.coverage) else ""
        words = f"by {one.method} with {size_words(numbers, numbers.size)}{held}"
        interval = f"± {one.error_se:.2f} over {plural(one.n_models, 'model')}" if np.isfinite(one.error_se) else ""
        made.append(Answer(f"Smallest mean error, split {one.split}", f"{one.error:.2f} points", interval, words))
    return Answers(tuple(made))


def _cautions(numbers: StudyNumbers, best: list[BestMethod]) -> list[Block]:
    level = level_words(numbers.level)
    low = [one for one in best if one.coverage < numbers.level - TOO_NARROW]
    found: list[Block] = [
        Caution(
            f"On split {one.split}, {level} intervals of {one.method} held the truth only {percent(one.coverage)} of "
            "the time."
        )
        for one in low
    ]
    failed = int(numbers.summary["n_without"].sum())
    if failed:
        found.append(Caution(f"{plural(failed, 'estimate')} could not be made; the tables say of which methods."))
    return found


def _sections(result: StudyResult, numbers: StudyNumbers, best: list[BestMethod], target: str) -> list[Section]:
    data = numbers.data()
    errors = error_chart(numbers, data, best)
    made = [Section("Errors", (errors,), f"Distance between estimated and true {target} score, in points.")]
    if np.isfinite(numbers.summary["coverage"].to_numpy()).any():
        charts = (coverage_chart(numbers, data, best), width_chart(numbers, data, best))
        made.append(
            Section(
                "Intervals", charts, "Whether intervals hold the truth as often as they claim, and how wide they are."
            )
        )
    if np.isfinite(numbers.summary["spearman"].to_numpy()).any():
        made.append(Section("Order of models", (ranks_chart(numbers, data, best),)))
    made.append(Section("Models", (spread_chart(numbers, best),)))
    if result.summary["target"].n_unique() > 1:
        made.append(Section("Scenarios", (_scenarios(result, numbers, best[0].split),)))
    names = ("seconds_calibrate", "seconds_select", "seconds_estimate")
    rows = (
        numbers.summary.filter(budget=numbers.size).group_by("method", maintain_order=True).agg(pl.col(*names).mean())
    )
    columns = (
        Column("method", "Method"),
        Column("seconds_calibrate", "To calibrate", "number", 2, "CPU seconds, once a bank"),
        Column("seconds_select", "To select", "number", 2, "CPU seconds, once a selection"),
        Column("seconds_estimate", "To estimate", "number", 3, "CPU seconds, all models of a fold"),
    )
    return [
        *made,
        Section(
            "All numbers",
            (
                _numbers(numbers),
                Table.of(f"CPU seconds, with {size_words(numbers, numbers.size)}", "study-seconds", rows, columns),
            ),
        ),
    ]


def _scenarios(result: StudyResult, numbers: StudyNumbers, split: str) -> Table:
    """List the errors of every method on every score, at one size, on one split, the smallest first."""
    columns = (
        Column("target", "Score", has_menu=True),
        Column("method", "Method", has_menu=True),
        Column("error", "Mean error (points)", "number", 2),
        Column("coverage", "Intervals held", "percent"),
    )
    rows = result.summary.filter(split=split, budget=numbers.size)
    rows = rows.with_columns(method=METHOD, error=100.0 * pl.col("mae")).sort("error", maintain_order=True)
    caption = f"Mean errors by score, on split {split} with {size_words(numbers, numbers.size)}"
    return Table.of(caption, "scenario-errors", rows, columns)


def _numbers(numbers: StudyNumbers) -> Table:
    level = level_words(numbers.level)
    columns = (
        Column("split", "Split", has_menu=True),
        Column("method", "Method", has_menu=True),
        Column("budget", "Items" if numbers.unit == "items" else numbers.unit, "count", has_menu=True),
        Column("mae", "Mean error (points)", "number", 2),
        Column("mae_se", "± over repeats", "number", 2, "Standard error of the mean error"),
        Column("p95", "95th percentile", "number", 1, "One error in twenty is larger, in points"),
        Column("worst", "Largest error", "number", 1, "In points"),
        Column("bias", "Bias", "number", 2, "Mean of estimate less truth, in points"),
        Column("spearman", "Rank correlation", "number", 3),
        Column("coverage", "Held", "percent", 1, f"Share of {level} intervals that held the truth"),
        Column("half_width", "Half-width", "number", 1, "Median, in points"),
        Column("n_estimates", "Estimates", "count"),
        Column("n_without", "Failed", "count"),
    )
    rows = numbers.summary.sort("budget", "mae", maintain_order=True)
    return Table.of("Every method at every size", "study-numbers", rows, columns, n_shown=20)


def manifest_provenance(manifest: StudyManifest) -> tuple[Pair, ...]:
    """Return what the manifest of a study says of where its numbers come from."""
    study = manifest.study
    return (
        ("Study", f"{study['name']}, {manifest.kind}"),
        ("Data", f"{_data_words(study.get('data', {}))}, {manifest.data_fingerprint[:12]}"),
        ("Models and items", f"{count(manifest.n_models)} and {count(manifest.n_items)}"),
        ("Units of work", count(manifest.n_folds)),
        ("Seed", str(manifest.seed)),
        ("Calibration", _plain(study.get("calibration"))),
        ("Versions", ", ".join(f"{name} {number}" for name, number in manifest.versions.items())),
        ("Fingerprint", manifest.fingerprint[:16]),
    )


def _data_words(data: Any) -> str:
    """Name the data without the folders it lies in."""
    if not isinstance(data, Mapping):
        return "unnamed"
    named = data.get("builtin") or data.get("responses") or ()
    paths = [named] if isinstance(named, str) else named
    return shown([PurePath(str(path)).name for path in paths]) if paths else "unnamed"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{name} {json.dumps(one) if isinstance(one, list | dict) else one}"
            for name, one in value.items()
            if one is not None
        )
    return str(value)
