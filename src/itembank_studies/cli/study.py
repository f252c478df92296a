"""`itembank study`: compare selections and estimates on held-out models."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank_studies
from itembank.cli import options
from itembank.cli.command import Group
from itembank.cli.options import refuse_unused, write_figure
from itembank.cli.render import TABLE, Printer, note, progress, warnings_as_notes
from itembank.cli.signatures import Choices, argument, option, verb
from itembank.errors import shell_word
from itembank.tables import points_of
from itembank_studies.cli.study_papers import COMMANDS
from itembank_studies.cli.study_prediction import (
    COMPARISON_KINDS,
    PARTS,
    PREDICTION_KINDS,
    SETS,
    Row,
    check_kind,
    number,
    plot_prediction,
    print_differences,
    print_prediction,
    wide,
)

if TYPE_CHECKING:
    import polars as pl

    from itembank_studies.results import StudyResult

POINTS = ("mae", "p95", "worst", "bias", "rmse", "half_width")
"""Metrics on the scale of a score: tables show them in points."""


@click.group("study", cls=Group)
def study_command() -> None:
    """Compare ways to select and to estimate, on held-out models, and examine the benchmark itself.

    A study calibrates on some models and estimates the others from few of their items, by every selection and estimate
    that its file names, and repeats that. A prediction study asks how well few answers to some tasks predict these and
    other tasks.

      itembank study run study.toml -o study
      itembank study table study --metric mae --metric coverage
      itembank study table study --figure error.png
      itembank study run prediction.toml -o prediction
      itembank study table prediction --set extrapolation --figure items.png
    """


@verb("run", study_command)
def run(
    *,
    study: Annotated[Path, argument(type=options.FILE, metavar="STUDY.toml")],
    output: Annotated[Path, option("Folder of the results.", "-o", "--output", metavar="DIR", type=options.ANY_PATH)],
    jobs: options.Jobs = -1,
) -> None:
    """Run a study described by a TOML file: one of whole scores, or one of prediction (with assessors).

    A prediction study divides models into training and test models, and tasks into those that may be asked and those
    that may not; every assessor chooses items and predicts each task's held-out items. To continue a study that was
    stopped, give the same command again: it finds the same numbers.

      itembank study run study.toml -o study
      itembank study run prediction.toml -o prediction --jobs 2
      itembank report study -o study.html
    """
    from itembank_studies.study_files import holds_prediction

    studies, of_prediction = itembank_studies, holds_prediction(study)
    load: Any = studies.load_prediction if of_prediction else studies.load_study
    run_spec: Any = studies.run_prediction if of_prediction else studies.run_study
    with warnings_as_notes():
        spec = load(study)
        with progress(f"study {spec.name}") as report:
            result = run_spec(spec, output, n_jobs=jobs, progress=report)
    if of_prediction:
        note(f"{result.curves.height} errors of {len(result.assessors)} assessors in {output}.")
    else:
        note(f"{result.estimates.height} estimates in {output}.")
    note(f"Next: itembank study table {shell_word(output)}")
    note(f"To see it as a page: itembank report {shell_word(output)} -o study.html")


_OF_COMPARISONS: Choices = {
    "metrics": option(
        "mae, p95, worst, bias, rmse, spearman, kendall, pair_accuracy, coverage, half_width, ... Repeatable.  "
        "[default: mae]",
        "--metric",
        metavar="NAME",
        multiple=True,
    ),
    "target": option("The score that is estimated.", default="overall"),
}
_OF_PREDICTIONS: Choices = {
    "n_tasks": option("Numbers of calibration tasks. Repeatable.", "--tasks", type=int, multiple=True),
    "sets": option("Tasks that were asked, or others. Repeatable.", "--set", type=SETS, multiple=True),
    "parts": option(
        "Tables to print; at-cost: errors at a cost; reach: the cost of an error. Repeatable.  [default: all]",
        "--show",
        type=PARTS,
        multiple=True,
    ),
    "assessors": option(
        "With --figure: draw only these; kinds tasks and models compare two, dims takes one for each number of "
        "abilities. Repeatable.",
        "--assessor",
        multiple=True,
    ),
}
_FIGURE: Choices = {
    "figure": options.figure("the study"),
    "kind": option(
        "Error, rank correlation, coverage or width by the number of items; errors by true scores. "
        "Prediction: error by items or cost; differences of two assessors by task or model; "
        "error by the number of abilities.  [default: error; prediction: items]",
        type=(*COMPARISON_KINDS, *PREDICTION_KINDS),
    ),
}


@verb("table", study_command)
def table(
    *,
    study: Annotated[Path, argument(type=options.EXISTING_FOLDER, metavar="DIR")],
    against: Annotated[
        str | None,
        option(
            "Print mean absolute errors divided by those of this method; for a prediction study, differences from "
            "those of this assessor.",
            metavar="SELECTOR/ESTIMATOR",
        ),
    ],
    comparison: Annotated[Choices, {"Studies of whole scores": _OF_COMPARISONS}],
    prediction: Annotated[Choices, {"Prediction studies": _OF_PREDICTIONS}],
    drawn: Annotated[Choices, {"Figure": _FIGURE}],
    out: options.Out,
) -> None:
    """Print or draw a study's metrics: one row a split, selector and estimator, one column a number of items.

    For a prediction study: errors and costs at every budget, one row an assessor (a way to choose items and predict),
    and the cost of reaching an error.

    Tables show errors and widths in points, with the standard error over repeats after ±. JSON and CSV show them from 0
    to 1, one row for each size, with every metric unless some are named.

      itembank study table study
      itembank study table study --metric spearman --target gsm8k
      itembank study table study --against anchor-irt/gp-irt
      itembank study table study --figure spread.png --kind spread
      itembank study table prediction --set extrapolation --tasks 16 --show errors --show reach
      itembank study table prediction --figure tasks.png --kind tasks
    """
    from itembank_studies.engine import read_manifest

    refuse_unused((("kind", "assessors"), drawn["figure"] is not None, "--figure FILE"))
    if read_manifest(study).kind == "prediction":
        refuse_unused((comparison, False, "a study of whole scores"))
        _prediction_table(study, against, prediction, drawn, out)
    else:
        refuse_unused((prediction, False, "a prediction study"))
        _comparison_table(study, against, comparison, drawn, out)


def _prediction_table(study: Path, against: str | None, asked: Choices, drawn: Choices, out: Printer) -> None:
    parts, which = set(asked["parts"]), {name: asked[name] for name in ("sets", "n_tasks")}
    figure, kind = drawn["figure"], drawn["kind"] or "items"
    errors = figure is not None or parts not in ({"tasks"}, {"cost"})
    refuse_unused(
        ("parts", against is None, "errors as they are, not with --against"),
        ("sets", errors, "tables of errors"),
        ("n_tasks", errors or parts != {"tasks"}, "tables of errors or costs"),
    )
    if figure is not None:
        check_kind(kind, PREDICTION_KINDS)
        plot_prediction(study, kind, figure, **which, assessors=asked["assessors"])
    if against is not None:
        print_differences(study, against, **which, out=out)
    else:
        print_prediction(study, asked["parts"], **which, out=out)


def _comparison_table(study: Path, against: str | None, asked: Choices, drawn: Choices, out: Printer) -> None:
    from itembank_studies.summary import CELL, METRICS

    metrics, target = asked["metrics"], asked["target"]
    _check_names("--metric", metrics, list(METRICS))
    result = itembank_studies.StudyResult.load(study)
    summary, estimates = _of_target(result.summary, target), _of_target(result.estimates, target)
    result = replace(result, summary=summary, estimates=estimates)
    if drawn["figure"] is not None:
        from itembank_studies.charts.study_charts import study_chart

        kind = drawn["kind"] or "error"
        check_kind(kind, COMPARISON_KINDS)
        write_figure(study_chart(result, kind, target=target), drawn["figure"])
    if against is not None:
        refuse_unused(("metrics", False, "metrics; --against compares mean absolute errors"))
        _print_ratios(result, against, target, out)
        return
    if out.is_table:
        for metric in metrics or ("mae",):
            unit = ", in points" if metric in POINTS else ""
            title = f"{_least_error(summary) if metric == 'mae' else ''}{metric} of {target}: {METRICS[metric]}{unit}"
            TABLE.rows(_by_size(result, summary, metric), "study", title=title)
        return
    wanted = [name for one in metrics for name in (one, f"{one}_se") if name in summary.columns]
    out.rows(
        summary.select(*CELL, *(wanted or [name for name in summary.columns if name not in CELL])).to_dicts(), "study"
    )


def _least_error(summary: "pl.DataFrame") -> str:
    """Say which way errs least from the most items, on average over splits."""
    import polars as pl

    last = summary.filter(summary["budget"] == summary["budget"].max())
    means = last.group_by("selector", "estimator", maintain_order=True).agg(pl.col("mae").mean()).drop_nans("mae")
    if means.height < 2:
        return ""
    best = means.sort("mae", maintain_order=True).row(0, named=True)
    return f"{best['selector']} × {best['estimator']} errs least with the most items, {points_of(best['mae'])} points; "


def _print_ratios(result: "StudyResult", against: str, target: str, out: Printer) -> None:
    """Print errors divided by those of one method, and their geometric means over splits and sizes."""
    from itembank_studies.summary import error_ratios, geometric_mean

    selector, _, estimator = against.partition("/")
    ratios = error_ratios(result.estimates, selector, estimator)
    if not out.is_table:
        out.rows(ratios.to_dicts(), "study-ratios")
        return
    title = f"mean absolute error of {target} divided by that of {selector} × {estimator}"
    TABLE.rows(_by_size(result, ratios, "ratio"), "study-ratios", title=title)
    means = geometric_mean(ratios).select("selector", "estimator", "ratio", "n_cells")
    TABLE.rows(means.to_dicts(), "study-ratios", title="geometric mean over splits and sizes")


def _of_target(frame: "pl.DataFrame", target: str) -> "pl.DataFrame":
    _check_names("--target", (target,), frame["target"].unique(maintain_order=True).to_list())
    return frame.filter(frame["target"] == target)


def _check_names(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise click.BadParameter(f"must be one of {', '.join(known)}, got {unknown[0]!r}.", param_hint=option)


def _by_size(result: "StudyResult", table: "pl.DataFrame", metric: str) -> list[Row]:
    """One row a split, selector and estimator; one column a size."""
    scale, digits = (100.0, 2) if metric in POINTS else (1.0, 3)
    cell = partial(number, metric=metric, scale=scale, digits=digits)
    short = f"{result.budget_unit} ≤" if result.budget_unit else "n ="
    return wide(table, ["split", "selector", "estimator"], lambda row: f"{short} {row['budget']:g}", cell)


for one in COMMANDS:
    study_command.add_command(one)
