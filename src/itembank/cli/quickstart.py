"""`itembank quickstart`: the whole job on built-in data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.options import folder_option, format_option, seed_option
from itembank.cli.render import note, print_rows, progress, warnings_as_notes
from itembank.cli.report_options import typed_command, write_report

if TYPE_CHECKING:
    from itembank.pages.quickstart import QuickstartResult


@click.command("quickstart", cls=Command)
@folder_option("quickstart", "bank, selection, estimates, figure and report")
@click.option("-n", "--n-items", type=click.IntRange(min=1), default=100, show_default=True, help="Items in all.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Times to split, calibrate and choose again; errors are over all of them.",
)
@seed_option
@format_option
def command(*, output: Path, n_items: int, repeats: int, seed: int, output_format: str) -> None:
    """Run the whole job on built-in data, in about a minute.

    Takes the answers of 280 language models to 1,820 questions in 16 tasks. The models are tiny and our own: five
    checkpoints of each of 56 training runs. A quarter of the runs is held out, with all their checkpoints. The
    others calibrate a bank, 100 items are chosen, and the scores of the held-out models are estimated from these
    items alone. The table says how far each way of doing so is from the truth.

    \b
      itembank quickstart
      itembank quickstart -n 40 -o somewhere --format json
    """  # noqa: D301
    from itembank.pages.quickstart import run_quickstart  # noqa: PLC0415

    with warnings_as_notes(), progress("quickstart") as advance:
        result = run_quickstart(output, n_items=n_items, n_repeats=repeats, rng=seed, progress=advance)
    _print(result, n_items, output_format)
    _write_page(result, output / "report.html")


def _print(result: "QuickstartResult", n_items: int, output_format: str) -> None:
    """Print the errors of each strategy, then where the files are and what to try next."""
    rows = [one.row() for one in result.errors]
    if output_format == "table":
        rows = [_table_row(row) for row in rows]
    first = result.first
    title = (
        f"Overall score of {first.held_out.n_models} unseen models estimated from {n_items} of "
        f"{first.bank.n_items:,} items; errors in points, over {result.n_repeats} repeats"
    )
    print_rows(rows, output_format, title=title)
    note("The models are tiny language models of our own. No checkpoint of a held-out training run is in the bank.")
    flagged = result.flagged
    if 0 < flagged.n_flagged < flagged.n_models:
        note(
            f"Of {flagged.n_models} estimates by the default, {flagged.n_flagged} are of models that answered unlike "
            f"past models (hollow in the figure): their mean error is {flagged.flagged:.1f} points, that of the others "
            f"{flagged.others:.1f}."
        )
    for text in result.notes:
        note(text)
    note("Written: " + ", ".join(str(path) for path in result.files.values()))
    bank, selection, responses = (result.files[name] for name in ("bank", "selection", "responses"))
    note(f"Next: itembank info {bank}")
    note(f"      itembank estimate {bank} {responses} --selection {selection}")


def _write_page(result: "QuickstartResult", path: Path) -> None:
    """Write the page and say where it is; without what it needs, say so."""
    from itembank.errors import MissingDependencyError  # noqa: PLC0415
    from itembank.pages.quickstart import quickstart_page  # noqa: PLC0415

    try:
        write_report(quickstart_page(result, command=typed_command()), path)
    except MissingDependencyError as error:
        note(f"The report was left out: {error}")


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    """Round for reading."""
    return {
        "strategy": row["strategy"],
        "items by": _asked_and_used(row["selection"], row["selections_used"]),
        "score by": _asked_and_used(row["method"], row["methods_used"]),
        "mean error": f"{row['mean_absolute_error']:.1f}",
        "worst error": f"{row['worst_error']:.1f}",
        "rank correlation": f"{row['spearman']:.3f}",
        f"inside {100 * row['level']:g} % interval": f"{100 * row['coverage']:.0f} %",
    }


def _asked_and_used(asked: str, used: str) -> str:
    """Say what 'auto' came to."""
    return f"{asked}: {used}" if asked == "auto" else asked
