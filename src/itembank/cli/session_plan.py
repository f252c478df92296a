"""`itembank session plan`: whether asking one item at a time pays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from itembank.cli.command import Command
from itembank.cli.options import bank_argument, format_option, level_option, parallel_option
from itembank.cli.render import note, print_record, progress, warnings_as_notes


@click.command("plan", cls=Command)
@bank_argument
@click.option("-n", "--n-items", type=click.IntRange(min=1), help="Items to ask a new model.")
@click.option(
    "--half-width",
    type=float,
    help="Or: as many items as this half-width of the interval of the score needs, between 0 and 1.",
)
@click.option("--target", default="overall", show_default=True, help="The wanted score: 'overall' or a scenario.")
@level_option
@parallel_option
@format_option
def plan(
    *,
    bank: Path,
    n_items: int | None,
    half_width: float | None,
    target: str,
    level: float,
    output_format: str,
) -> None:
    """Find whether asking one item at a time pays, from the bank alone.

    A session chooses each item by the answers before it, which takes a run of your harness for every item. The same
    number of items chosen beforehand takes one run. How much closer a session comes depends on the bank: much where one
    ability rules, hardly where there are many. Here each of the bank's models takes the part of a new model in turn,
    and is asked at once, in two stages and one by one. Errors are of the score's estimate, in points of 100. Asking at
    once is recommended unless another way is better by more than a standard error of the difference.

    \b
      itembank session plan bank -n 30
      itembank session plan bank --half-width 0.03
      itembank session plan bank -n 100 --target math --format json
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.sessions.plan_sessions import plan_sessions  # noqa: PLC0415

    if (n_items is None) == (half_width is None):
        raise click.UsageError("Say how many items may be asked: one of -n N and --half-width W.")
    loaded = load_bank(bank)
    with warnings_as_notes(), progress("session plan") as report:
        made = plan_sessions(
            loaded,
            n_items,
            half_width=half_width,
            target=target,
            level=level,
            progress=report,
        )
    rows = made.rows()
    print_record(
        made.to_dict(),
        "designs",
        [_in_points(row) for row in rows] if output_format == "table" else rows,
        output_format,
        title=f"Ways to ask a new model {made.n_items} items of bank {bank}",
        heading=f"Errors of the estimate of {target!r}, in points, on the bank's models left out in turn",
        least=("half-width",),
    )
    note(made.message)


def _in_points(row: Mapping[str, Any]) -> dict[str, Any]:
    """Write errors in points, each with its standard error."""
    is_first = row["gain"] == 0.0 and row["standard_error_of_gain"] == 0.0
    return {
        "design": row["design"],
        "mean error": f"{_points(row['mean_absolute_error'])} ± {_points(row['standard_error'])}",
        "gain": "" if is_first else f"{_points(row['gain'])} ± {_points(row['standard_error_of_gain'])}",
        "half-width": _points(row["half_width"]),
        "take": "this" if row["is_taken"] else "",
    }


def _points(value: float) -> str:
    return f"{100.0 * value:.2f}"
