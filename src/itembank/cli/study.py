"""`itembank study`: compare selections and estimates by leaving models out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Function, Group, headed
from itembank.cli.options import FILE, format_option, jobs_option, refuse_unused
from itembank.cli.render import note, print_rows, progress, warnings_as_notes
from itembank.cli.report_options import figure_option, report_option, report_result, write_figure
from itembank.cli.study_papers import COMMANDS
from itembank.cli.study_prediction import (
    COMPARISON_KINDS,
    PARTS,
    PREDICTION_KINDS,
    check_kind,
    is_prediction,
    plot_prediction,
    prediction_options,
    print_differences,
    print_prediction,
    refuse_options,
)
from itembank.cli.study_tables import Row, number, wide

if TYPE_CHECKING:
    import polars as pl

    from itembank.pages.render import Page
    from itembank.studies.results import StudyResult

POINTS = ("mae", "p95", "worst", "bias", "rmse", "half_width")
"""Metrics on the scale of a score: tables show them in points, as everybody does."""

STUDY_ARGUMENT = click.argument("study", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
TARGET_OPTION = click.option("--target", default="overall", show_default=True, help="The score that is estimated.")


def _running(function: Function) -> Function:
    """Add what running a study of either kind takes."""
    for option in (
        report_option,
        click.option("--no-resume", is_flag=True, help="Refuse to go on with a study that stands at -o."),
        jobs_option(-1),
        click.option(
            "-o",
            "--output",
            required=True,
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder of the results.",
        ),
        click.argument("study", type=FILE, metavar="STUDY.toml"),
    ):
        function = option(function)
    return function


@click.group("study", cls=Group)
def command() -> None:
    """Compare ways to select and to estimate, on models left out, and examine the benchmark itself.

    A study calibrates on some models and estimates the others from a few of their items, by every selection and
    estimate it names, as often as it says.

    \b
      itembank study run study.toml -o study
      itembank study table study --metric mae --metric coverage
      itembank study plot study --kind error --figure error.png

    A prediction study asks how well few answers to some tasks predict these and other tasks; `table` and `plot` know
    it by its folder.

    \b
      itembank study predict prediction.toml -o prediction
      itembank study table prediction --set extrapolation
      itembank study plot prediction --kind items --figure items.png
    """  # noqa: D301


@command.command("run")
@_running
def run(*, study: Path, output: Path, jobs: int, no_resume: bool, report: Path | None) -> None:
    """Run a study written as a TOML file.

    A study that was stopped goes on where it was when the same command is given again, and finds the same numbers.

    \b
      itembank study run study.toml -o study
      itembank study run study.toml -o study --jobs 2 --report study.html
    """  # noqa: D301
    from itembank.studies.run import run_study  # noqa: PLC0415
    from itembank.studies.study_files import load_study  # noqa: PLC0415

    result = _ran(load_study, run_study, study, output, jobs=jobs, no_resume=no_resume)
    note(f"{result.estimates.height} estimates in {output}.")
    _show(report, output)


@command.command("predict")
@_running
def predict(*, study: Path, output: Path, jobs: int, no_resume: bool, report: Path | None) -> None:
    """Run a prediction study written as a TOML file.

    Models are divided into training and test models, tasks into those that may be asked and those that may not; every
    assessor chooses items and predicts each task's held-out items. A study that was stopped goes on where it was when
    the same command is given again, and finds the same numbers.

    \b
      itembank study predict prediction.toml -o prediction
    """  # noqa: D301
    from itembank.studies.run import run_prediction  # noqa: PLC0415
    from itembank.studies.study_files import load_prediction  # noqa: PLC0415

    result = _ran(load_prediction, run_prediction, study, output, jobs=jobs, no_resume=no_resume)
    note(f"{result.curves.height} errors of {len(result.assessors)} assessors in {output}.")
    _show(report, output)


def _show(report: Path | None, folder: Path) -> None:
    """Write the page of a study where one was asked for; else say how to see it."""
    note(f"Next: itembank study table {folder}")
    report_result(report, "table", partial(_page, folder))


def _page(folder: Path, typed: str) -> "Page":
    from itembank.pages.prediction_study_page import study_folder_page  # noqa: PLC0415

    return study_folder_page(folder, command=typed)


def _ran(
    load: Callable[[Path], Any], run_spec: Callable[..., Any], study: Path, output: Path, *, jobs: int, no_resume: bool
) -> Any:
    """Run the study of a file, telling how far it is, and return its result."""
    with warnings_as_notes():
        spec = load(study)
        with progress(f"study {spec.name}") as report:
            return run_spec(spec, output, n_jobs=jobs, progress=report, resume=not no_resume)


@command.command("table")
@STUDY_ARGUMENT
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="mae, p95, worst, bias, rmse, spearman, kendall, pair_accuracy, coverage, half_width, ...  [default: mae]",
)
@click.option(
    "--against",
    nargs=2,
    metavar="SELECTOR ESTIMATOR",
    help="Print mean absolute errors over those of this method instead of metrics.",
)
@TARGET_OPTION
@headed(
    "Prediction studies",
    prediction_options,
    click.option(
        "--show",
        "parts",
        type=click.Choice(PARTS),
        multiple=True,
        help="Tables to print; at-cost: errors at a cost; reach: what errors cost. Repeatable.  [default: all]",
    ),
    click.option("--against-assessor", metavar="NAME", help="Print differences of errors to those of this assessor."),
)
@format_option
def table(
    *,
    study: Path,
    metrics: tuple[str, ...],
    against: tuple[str, str] | None,
    target: str,
    sets: tuple[str, ...],
    n_tasks: tuple[int, ...],
    parts: tuple[str, ...],
    against_assessor: str | None,
    output_format: str,
) -> None:
    """Print a study's metrics: one row a split, selector and estimator, one column a number of items.

    Of a prediction study: errors and costs at every budget, one row an assessor, and what it costs to reach an error.

    Tables show errors and widths in points (hundredths of a score), with the standard error over repeats after ±. JSON
    and CSV show them from 0 to 1, one row for each size, with every metric unless some are named.

    \b
      itembank study table study
      itembank study table study --metric spearman --target gsm8k
      itembank study table study --against anchor-irt gp-irt
      itembank study table study --format csv > summary.csv
      itembank study table prediction --set extrapolation --tasks 16 --show errors --show reach
    """  # noqa: D301
    if is_prediction(study):
        refuse_options({"--metric": metrics, "--against": against}, "prediction")
        refuse_unused(
            ("target", False, "a comparison study"),
            ("sets", set(parts) != {"tasks"} and set(parts) != {"cost"}, "tables of errors"),
            ("n_tasks", set(parts) != {"tasks"}, "tables of errors or costs"),
        )
        if against_assessor is not None:
            refuse_options({"--show": parts}, "table of differences of a prediction")
            print_differences(study, against_assessor, sets=sets, n_tasks=n_tasks, output_format=output_format)
            return
        print_prediction(study, parts, sets=sets, n_tasks=n_tasks, output_format=output_format)
        return
    refuse_options(
        {"--set": sets, "--tasks": n_tasks, "--show": parts, "--against-assessor": against_assessor}, "comparison"
    )
    from itembank.studies.results import StudyResult  # noqa: PLC0415
    from itembank.studies.summary import CELL, METRICS  # noqa: PLC0415

    _check_names("--metric", metrics, list(METRICS))
    result = StudyResult.load(study)
    summary = _of_target(result.summary, target)
    if against is not None:
        if metrics:
            raise click.UsageError("--against compares mean absolute errors; leave --metric out.")
        _print_ratios(result, against, target, output_format)
        return
    if output_format == "table":
        for metric in metrics or ("mae",):
            unit = ", in points" if metric in POINTS else ""
            title = f"{metric} of {target}: {METRICS[metric]}{unit}"
            print_rows(_by_size(result, summary, metric), "table", title=title)
        return
    wanted = [name for one in metrics for name in (one, f"{one}_se") if name in summary.columns]
    print_rows(
        summary.select(*CELL, *(wanted or [name for name in summary.columns if name not in CELL])).to_dicts(),
        output_format,
    )


def _print_ratios(result: "StudyResult", against: tuple[str, str], target: str, output_format: str) -> None:
    """Print errors over those of one method, and their geometric means over splits and sizes."""
    from itembank.studies.ratios import error_ratios, geometric_mean  # noqa: PLC0415

    ratios = error_ratios(_of_target(result.estimates, target), *against)
    if output_format != "table":
        print_rows(ratios.to_dicts(), output_format)
        return
    title = f"mean absolute error of {target} over that of {' × '.join(against)}"
    print_rows(_by_size(result, ratios, "ratio"), "table", title=title)
    means = geometric_mean(ratios).select("selector", "estimator", "ratio", "n_cells")
    print_rows(means.to_dicts(), "table", title="geometric mean over splits and sizes")


@command.command("plot")
@STUDY_ARGUMENT
@click.option(
    "--kind",
    type=click.Choice([*COMPARISON_KINDS, *PREDICTION_KINDS]),
    required=True,
    help="Error, rank correlation, coverage or width against the number of items; errors against true scores. "
    "Prediction: error against items or cost; differences of two assessors by task or model; items chosen by task; "
    "change of the error with the number of abilities.",
)
@figure_option("the study", required=True)
@TARGET_OPTION
@click.option("--split", "splits", multiple=True, help="Draw only these splits. Repeatable.")
@click.option("--selector", "selectors", multiple=True, help="Draw only these selectors. Repeatable.")
@click.option("--estimator", "estimators", multiple=True, help="Draw only these estimators. Repeatable.")
@click.option(
    "-n",
    "size",
    type=float,
    help="Spread, tasks, models, choices: items or amount of cost.  [default: that nearest to 100 items, or the "
    "middle one]",
)
@headed(
    "Prediction studies",
    prediction_options,
    click.option(
        "--assessor",
        "assessors",
        multiple=True,
        help="Draw only these; tasks, models: two to compare; dims: one of each number of abilities. Repeatable.",
    ),
)
@click.option("--force", is_flag=True, help="Replace the file that stands at --figure.")
def plot(
    *,
    study: Path,
    kind: str,
    figure: Path,
    target: str,
    splits: tuple[str, ...],
    selectors: tuple[str, ...],
    estimators: tuple[str, ...],
    sets: tuple[str, ...],
    n_tasks: tuple[int, ...],
    assessors: tuple[str, ...],
    size: float | None,
    force: bool,
) -> None:
    """Draw a study.

    \b
      itembank study plot study --kind error --figure error.png
      itembank study plot study --kind spread --figure spread.png --selector anchor-irt -n 100
      itembank study plot prediction --kind cost --set extrapolation --tasks 16 --figure cost.png
      itembank study plot prediction --kind tasks -n 16 --figure tasks.png
    """  # noqa: D301
    from itembank.errors import DataError  # noqa: PLC0415
    from itembank.pages.study_charts import study_chart  # noqa: PLC0415
    from itembank.studies.results import StudyResult  # noqa: PLC0415

    if figure.exists() and not force:
        raise DataError(f"{figure} is there already. Give another name, or --force.")
    if is_prediction(study):
        refuse_options({"--split": splits, "--selector": selectors, "--estimator": estimators}, "prediction")
        check_kind(kind, PREDICTION_KINDS)
        refuse_unused(
            ("target", False, "a comparison study"),
            ("size", kind not in {"items", "cost", "dims"}, "--kind tasks, models or choices"),
            ("sets", kind != "choices", "the other kinds: items are chosen of tasks that are asked"),
        )
        budget = None if size is None else int(size)
        plot_prediction(study, kind, figure, sets=sets, n_tasks=n_tasks, assessors=assessors, budget=budget)
        return
    refuse_options({"--set": sets, "--tasks": n_tasks, "--assessor": assessors}, "comparison")
    check_kind(kind, COMPARISON_KINDS)
    refuse_unused(("size", kind == "spread", "--kind spread"))
    result = StudyResult.load(study)
    summary, estimates = _of_target(result.summary, target), _of_target(result.estimates, target)
    wanted = {"split": splits, "selector": selectors, "estimator": estimators}
    for column, names in wanted.items():
        _check_names(f"--{column}", names, summary[column].unique(maintain_order=True).to_list())
        if names:
            summary, estimates = (one.filter(one[column].is_in(names)) for one in (summary, estimates))
    if size is not None and size not in estimates["budget"]:
        sizes = ", ".join(f"{one:g}" for one in estimates["budget"].unique().sort())
        raise click.BadParameter(f"must be one of the study's, {sizes}, got {size:g}.", param_hint="-n")
    chosen = replace(result, summary=summary, estimates=estimates)
    write_figure(study_chart(chosen, kind, target=target, size=size), figure)


def _of_target(frame: "pl.DataFrame", target: str) -> "pl.DataFrame":
    """Keep one target."""
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
    command.add_command(one)
