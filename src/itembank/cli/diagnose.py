"""`itembank diagnose`: what responses say about the benchmark itself."""

from pathlib import Path
from typing import Any

import click

from itembank.cli.options import (
    RESPONSE_OPTIONS,
    format_option,
    item_reading_options,
    reading_spec,
    refuse_unused,
    seed_option,
)
from itembank.cli.render import note, print_record, progress, warnings_as_notes

DIMENSIONS_CANDIDATES = "1,2,3,4,5,8"


@click.group("diagnose")
def command() -> None:
    """Say what responses tell of the benchmark itself.

    \b
      itembank diagnose dimensions responses.parquet --figure dimensions.png
      itembank diagnose homogeneity bank --output homogeneity.png
    """  # noqa: D301


@command.command("dimensions")
@click.argument("responses", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--candidates",
    default=DIMENSIONS_CANDIDATES,
    show_default=True,
    metavar="N,N,...",
    help="Numbers of dimensions to try on models left out.",
)
@click.option(
    "--method",
    type=click.Choice(["variational", "map", "mml"]),
    default="variational",
    show_default=True,
    help="How they are calibrated, as for itembank calibrate.",
)
@click.option("--figure", type=click.Path(dir_okay=False, path_type=Path), help="Also draw it: a PNG, SVG or PDF file.")
@item_reading_options
@seed_option
@format_option
def dimensions(
    *,
    responses: tuple[Path, ...],
    candidates: str,
    method: str,
    figure: Path | None,
    reading: dict[str, Any],
    seed: int,
    output_format: str,
) -> None:
    """Count the abilities that responses tell of.

    By the eigenvalues of the item correlations, by those that exceed shuffled responses (parallel analysis), and by
    how well each number of dimensions predicts the scores of models left out. The last is what calibrate goes by.

    \b
      itembank diagnose dimensions responses.parquet --figure dimensions.png
      itembank diagnose dimensions responses.parquet --candidates 1,2,4,8 --format json
    """  # noqa: D301
    from itembank.data.readers.read import read_responses  # noqa: PLC0415
    from itembank.diagnostics.dimensions import dimensionality  # noqa: PLC0415
    from itembank.reports.canvas import check_figure_destination, save_figure  # noqa: PLC0415
    from itembank.reports.dimensions import figure_dimensionality  # noqa: PLC0415

    tried = _numbers(candidates)
    if figure is not None:
        check_figure_destination(figure)  # complains before the long work, not after
    with warnings_as_notes():
        matrix = read_responses(responses, spec=reading_spec(reading), items=reading["items"])
        with progress("diagnose") as report:
            found = dimensionality(matrix, method, candidates=tried, rng=seed, progress=report)
        if figure is not None:
            note(f"Figure: {save_figure(figure_dimensionality(found), figure)}")
    print_record(
        found.to_dict(),
        "held_out",
        [_in_points(row) for row in found.rows()] if output_format == "table" else found.rows(),
        output_format,
        title="Dimensions",
        heading="Errors for models left out, in points",
        least=("log_likelihood_standard_error", "relative_standard_error", "log_likelihood"),
    )


def _in_points(row: dict[str, Any]) -> dict[str, Any]:
    """Errors in the unit in which the message speaks of them."""
    return {name: 100.0 * value if "error" in name and "log" not in name else value for name, value in row.items()}


HOMOGENEITY_COLUMNS = (
    "scenario", "n_items", "n_models", "difficulty", "discrimination",
    "reliability", "items_for_90", "warnings",
)  # fmt: skip
"""What a terminal has room for."""


@command.command("homogeneity")
@click.argument(
    "source", metavar="BANK|RESPONSES", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Items that a law is to be made from.",
)
@click.option("--scenario", "scenarios", multiple=True, help="Draw this one; at most eight. Repeatable.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="Also draw it: a PNG, SVG or PDF file.")  # fmt: skip
@item_reading_options
@seed_option
@format_option
def homogeneity_command(
    *,
    source: tuple[Path, ...],
    budget: int,
    scenarios: tuple[str, ...],
    output: Path | None,
    reading: dict[str, Any],
    seed: int,
    output_format: str,
) -> None:
    """Say where items are too much alike, or tell too little, for a scaling law.

    Every scenario is calibrated by itself. Spreads of difficulty and discrimination are in standard deviations of the
    models' abilities; reliability is the share of the variance of ability that so many items tell, over the middle nine
    tenths of the models.

    \b
      itembank diagnose homogeneity bank --output homogeneity.png
      itembank diagnose homogeneity responses.parquet --budget 100 --format csv
    """  # noqa: D301
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.data.readers.read import read_responses  # noqa: PLC0415
    from itembank.diagnostics.scenario_homogeneity import homogeneity  # noqa: PLC0415
    from itembank.reports.canvas import check_figure_destination, save_figure  # noqa: PLC0415
    from itembank.reports.homogeneity_figures import figure_homogeneity  # noqa: PLC0415

    is_bank = len(source) == 1 and (source[0] / "bank.json").is_file()
    refuse_unused(
        ("scenarios", output is not None, "-o FILE, which draws it"),
        *((name, not is_bank, "RESPONSES, not with a bank") for name in ("items", *RESPONSE_OPTIONS)),
    )
    if output is not None:
        check_figure_destination(output)  # complains before the long work, not after
    with warnings_as_notes():
        if is_bank:
            past: Any = load_bank(source[0])
        else:
            past = read_responses(source, spec=reading_spec(reading), items=reading["items"])
        with progress("diagnose") as report:
            found = homogeneity(past, budget=budget, rng=seed, progress=report)
        if output is not None:
            note(f"Figure: {save_figure(figure_homogeneity(found, scenarios=scenarios), output)}")
    print_record(
        found.to_dict(),
        "scenarios",
        [_with_spreads(row) for row in found.rows()] if output_format == "table" else found.rows(),
        output_format,
        title="Homogeneity (spread with its interval; CSV and JSON have more)",
        columns=HOMOGENEITY_COLUMNS,
        least=("n_models", "n_items", "items_for_90", "reliability"),
    )


def _with_spreads(row: dict[str, Any]) -> dict[str, Any]:
    """Add each spread with its interval in one cell, which a terminal has room for."""
    told = {
        name: f"{row[f'{name}_sd']:.2f} ({row[f'{name}_sd_lower']:.2f} to {row[f'{name}_sd_upper']:.2f})"
        for name in ("difficulty", "discrimination")
    }
    return {**row, **told}


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"must be whole numbers with commas between them, got {text!r}.", param_hint="--candidates"
        ) from None
