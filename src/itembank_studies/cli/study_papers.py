"""`itembank study`: what responses say about the benchmark itself, and how much chosen items count."""

from pathlib import Path
from typing import Annotated, Any

import click

import itembank as ib
import itembank_studies
from itembank.cli import options
from itembank.cli.new_results import read_results
from itembank.cli.options import is_bank, write_figure
from itembank.cli.render import print_object, warnings_as_notes, working
from itembank.cli.signatures import WholeNumbers, argument, option, verb
from itembank.tables import plural, points_of


@verb("dimensions")
def dimensions_command(
    *,
    responses: options.Responses,
    dims: Annotated[
        tuple[int, ...],
        option("Numbers of dimensions to try on held-out models.", type=WholeNumbers(), default="1,2,3,4,5,8"),
    ],
    by: Annotated[
        str,
        option(
            "Eigenvalues of task scores, not of items; this column of the item table names the task.", metavar="COLUMN"
        ),
    ] = "",
    figure: options.Figure,
    out: options.Out,
) -> None:
    """Count the abilities that a benchmark measures.

    Three counts: eigenvalues of the item correlations, those above the eigenvalues of shuffled responses (parallel
    analysis), and the number of dimensions that best predicts the scores of held-out models. calibrate uses the last.

      itembank study dimensions responses.parquet --figure dimensions.png
      itembank study dimensions responses.parquet --dims 1,2,4,8 --format json
      itembank study dimensions responses.parquet --by scenario
    """
    with working("study") as report:
        matrix = read_results(responses)
        found = itembank_studies.dimensionality(matrix, candidates=dims, by=by, progress=report)
        _draw("dimensionality_chart", found, figure)
    out.record(
        found.to_dict(),
        "held_out",
        found.rows(),
        "dimensions",
        title=f"Dimensions: {found.n_dims} predict held-out models best, {found.n_dims_parallel} by parallel analysis",
        heading="Errors for held-out models, in points",
        least=("log_likelihood_standard_error", "relative_standard_error", "log_likelihood"),
    )


@verb("homogeneity")
def homogeneity_command(
    *,
    source: Annotated[tuple[Path, ...], argument(metavar="BANK|RESPONSES", type=options.BankPath(file_okay=True))],
    figure: options.Figure,
    out: options.Out,
) -> None:
    """Find scenarios whose items are too much alike, or say too little, for a scaling law.

    Every scenario is calibrated by itself. Spreads of difficulty and discrimination are in standard deviations of the
    models' abilities. Reliability is the share of the variance of ability that 50 items explain, over the middle
    90 % of the models.

      itembank study homogeneity bank --figure homogeneity.png
      itembank study homogeneity responses.parquet --format csv
    """
    with working("study") as report:
        past = ib.load_bank(source[0]) if len(source) == 1 and is_bank(source[0]) else read_results(source)
        found = itembank_studies.homogeneity(past, progress=report)
        _draw("homogeneity_chart", found, figure)
    rows = found.rows()
    n_warned = sum(bool(row["warnings"]) for row in rows)
    for row in rows if out.is_table else ():  # a terminal has room for each spread and interval in one cell
        for name in ("difficulty", "discrimination"):
            row[name] = f"{row[f'{name}_sd']:.2f} ({row[f'{name}_sd_lower']:.2f} to {row[f'{name}_sd_upper']:.2f})"
    out.record(
        found.to_dict(),
        "scenarios",
        rows,
        "homogeneity",
        title=f"{n_warned} of {len(rows)} scenarios have a warning; spreads have their intervals",
        columns=(
            *("scenario", "n_items", "n_models", "difficulty", "discrimination"),
            *("reliability", "items_for_90", "warnings"),
        ),
        least=("n_models", "n_items", "items_for_90", "reliability"),
    )


@verb("predictions")
def predictions_command(*, bank: options.Bank, figure: options.Figure, out: options.Out) -> None:
    """Compare each response with the probability that the item model gives it, for held-out models.

    The items are calibrated without these models. Half of a model's answers give the ability that predicts the other
    half. by_item_means is the correlation that the items' means alone reach. The calibration error is the mean distance
    of observed from predicted means in ten bins (in JSON); by_chance is its value for a perfect model.

      itembank study predictions bank --figure predictions.png
      itembank study predictions bank --format json
    """
    with working("study") as report:
        found = itembank_studies.item_predictions(ib.load_bank(bank), progress=report)
        _draw("item_predictions_chart", found, figure)
    about, rows = found.to_dict(), found.rows()
    if out.is_json:
        print_object({**about, "scenarios": rows, "bins": found.bins.to_dicts()}, "predictions")
        return
    whole = rows[-1]  # all items, or the only scenario
    title = (
        f"For held-out models the item model is off by {points_of(whole['calibration_error'])} points on average; "
        f"chance alone would make it {points_of(whole['by_chance'])}"
    )
    least = ("n_cells", "root_mean_square", "n_models", "n_items", "slope", "bias", "by_chance")
    out.record(about, "scenarios", rows, "predictions/scenarios", title=title, least=least)


@verb("weights")
def weights_command(
    *,
    bank: options.Bank,
    selections: Annotated[tuple[Path, ...], argument(metavar="SELECTION...", type=options.FILE)],
    figure: Annotated[Path | None, options.figure("the weights of the items, and of their scenarios and subscenarios")],
    out: options.Out,
) -> None:
    """Show how much each part of a benchmark counts among chosen items.

    The weight of an item is its share of the overall score's weighted mean. effective_items is the number of equally
    weighted items whose mean would be as precise. weight_in_score is what all items of a scenario or subscenario
    weigh in the full score. Several selections are compared; each is named after its file.

      itembank study weights bank selection.json
      itembank study weights bank irt.json correctness.json --figure weights.png
      itembank study weights bank selection.json --format csv
    """
    stems = [path.stem for path in selections]
    names = [path.stem if stems.count(path.stem) == 1 else str(path) for path in selections]
    if len(set(names)) < len(names):
        raise click.UsageError("Name every selection once.")
    found = itembank_studies.selection_weights(bank, dict(zip(names, selections, strict=True)))
    _draw("selection_weights_chart", found, figure)
    about, rows = found.to_dict(), found.rows()
    if out.is_json:
        print_object({**about, "parts": rows}, "weights")
        return
    if out.is_table:
        each = [f"the {one['n_items']} items of {one['selection']} count like {one['effective_items']:.1f}"
                for one in about["selections"]]  # fmt: skip
        title = f"Of equal weight, {', '.join(each)}"
        out.rows(about["selections"], "weights", title=title)
    least = ("effective_items", "n_items", "n_chosen")
    out.rows(rows, "weights", title="Weights in the overall score", least=least)


@verb("tasks")
def tasks_command(
    *,
    responses: options.Responses,
    by: Annotated[
        str, option("Column of the item table that names the task of an item.", metavar="COLUMN")
    ] = "scenario",
    cost: Annotated[
        str | None,
        option(
            "Also show what tasks cost: tokens, or any cost of the responses. A figure is then of costs beside scores.",
            metavar="NAME",
        ),
    ],
    figure: options.Figure,
    out: options.Out,
) -> None:
    """Compare tasks: what they cost, how well models do, and which of them order models alike.

    Scores are means of responses. Tasks come in the order of a hierarchical clustering of their correlations, each with
    the task that is most like it. JSON has the correlations of all pairs, too.

      itembank study tasks responses.parquet --cost tokens --figure tasks.png
      itembank study tasks responses.parquet --by subscenario --figure alike.png
      itembank study tasks responses.parquet --format json
    """
    with warnings_as_notes():
        matrix = read_results(responses)
        found = itembank_studies.task_overview(matrix, by=by, cost=cost)
        _draw("task_correlations_chart" if cost is None else "task_costs_chart", found, figure)
    if out.is_json:
        facts = {"unit": found.unit, "level": found.level}
        print_object({**facts, "tasks": found.rows(), "correlations": found.pairs()}, "tasks")
        return
    title = f"{plural(len(found.rows()), 'task')}, each with the one that orders models most like it"
    least = ("n_models", "cost_of_task", "spread", "n_items")
    out.rows(found.rows(), "tasks", title=title, least=least)


def _draw(chart: str, found: Any, figure: Path | None, **how: Any) -> None:
    if figure is not None:
        from itembank_studies.charts import paper_charts

        write_figure(getattr(paper_charts, chart)(found, **how), figure)


COMMANDS = (dimensions_command, homogeneity_command, predictions_command, weights_command, tasks_command)
