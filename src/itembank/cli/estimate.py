"""`itembank estimate`: full-benchmark scores from some responses."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.options import bank_argument, format_option, reading_options, seed_option
from itembank.cli.render import note, print_rows, warnings_as_notes

if TYPE_CHECKING:
    from itembank.estimation.estimates import ScoreEstimates

METHODS = ("mean", "weighted", "p-irt", "gp-irt")


@click.command("estimate")
@bank_argument
@click.argument("responses", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--selection",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The selection that was run; only its items are used.",
)
@click.option(
    "--method", type=click.Choice(METHODS), default="gp-irt", show_default=True, help="How the score is estimated."
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Level of the interval, between 0 and 1.")
@click.option("--win-rate", is_flag=True, help="Add the mean win rate over scenarios against the bank's models.")
@reading_options
@seed_option
@format_option
def command(
    *,
    bank: Path,
    responses: tuple[Path, ...],
    selection: Path | None,
    method: str,
    level: float,
    win_rate: bool,
    reading: dict[str, Any],
    seed: int,
    output_format: str,
) -> None:
    """Estimate what new models would score on the full benchmark.

    RESPONSES are response files or harness logs of the new models, over any items of the bank.

    \b
      itembank estimate bank new-model.csv --selection selection.json
      itembank estimate bank output/new-model/ --selection selection.json --format json
    """  # noqa: D301
    from itembank.data.bank_files import load_bank  # noqa: PLC0415
    from itembank.data.readers.agreement import check_same_content, spec_like  # noqa: PLC0415
    from itembank.data.readers.read import read_responses  # noqa: PLC0415
    from itembank.data.readers.specs import ReadingSpec  # noqa: PLC0415
    from itembank.data.selections import Selection  # noqa: PLC0415
    from itembank.estimation.estimate import estimate  # noqa: PLC0415

    loaded = load_bank(bank)
    chosen = None if selection is None else Selection.load(selection)
    with warnings_as_notes():
        # The new results hold no more than the items that were run, and are read as the bank's were.
        spec = spec_like(loaded.responses.items, ReadingSpec(empty="drop"))
        matrix = read_responses(responses, spec=spec, **reading)
        check_same_content(matrix.items, loaded.responses.items)
        estimates = estimate(
            loaded, matrix, selection=chosen, method=method, level=level, include_win_rate=win_rate, rng=seed
        )
    _print(estimates, output_format)


def _print(estimates: "ScoreEstimates", output_format: str) -> None:
    """Print the rows; in a table each estimate stands with its interval and the items behind it."""
    rows = estimates.rows()
    if output_format == "table":
        rows = [
            {
                "model_id": row["model_id"],
                "target": row["target"],
                "estimate": row["estimate"],
                f"{100 * row['level']:g} % interval": _interval(row),
                "items": f"{row['n_items']}/{row['n_total']}",
            }
            for row in rows
        ]
    title = f"Estimated full-benchmark scores by {estimates.method}, bank {estimates.bank_id}"
    print_rows(rows, output_format, title=title)
    note("Intervals are model-based: they hold as far as the item model does.")


def _interval(row: dict[str, Any]) -> str:
    """Both ends of an interval, or a dash."""
    low, high = row["low"], row["high"]
    return "-" if low != low or high != high else f"{low:.4f} to {high:.4f}"  # noqa: PLR0124 (NaN)
