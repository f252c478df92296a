"""`itembank quickstart`: the whole job on built-in data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command
from itembank.cli.options import (
    COUNT,
    folder_option,
    format_option,
    option,
    seed_option,
    typed_command,
    write_report,
)
from itembank.cli.render import note, print_rows, progress, warnings_as_notes

if TYPE_CHECKING:
    from itembank.pages.quickstart import QuickstartResult


@click.command("quickstart", cls=Command)
@folder_option("quickstart", "bank, selection, estimates, figure and report")
@option("-n --n-items", "Items in all.", COUNT, default=100)
@option("--repeats", "Random splits; errors are means over all of them.", COUNT, default=3)
@seed_option
@format_option
def quickstart_command(*, output: Path, n_items: int, repeats: int, seed: int, output_format: str) -> None:
    """Run the whole job on built-in data, in about a minute.

    It takes the answers of 280 language models to 1,820 items of 16 tasks. The models are tiny and our own: five
    checkpoints of each of 56 training runs. A quarter of the runs is held out, with all their checkpoints. The others
    calibrate a bank, 100 items are chosen, and the scores of the held-out models are estimated from these items alone.
    The table says how far each method is from the true scores.

    \b
      itembank quickstart
      itembank quickstart -n 40 -o somewhere --format json
    """  # noqa: D301
    from itembank.pages.quickstart import run_quickstart  # noqa: PLC0415

    with warnings_as_notes(), progress("quickstart") as advance:
        result = run_quickstart(output, n_items=n_items, n_repeats=repeats, rng=seed, progress=advance)
    _print_quickstart(result, n_items, output_format)
    _write_page(result, output / "report.html")


def _print_quickstart(result: "QuickstartResult", n_items: int, output_format: str) -> None:
    """Print the errors of each strategy, then where the files are and what to try next."""
    rows = [one.row() for one in result.errors]
    if output_format == "table":
        rows = [_table_row(row) for row in rows]
    first = result.first
    title = (
        f"Overall score of {first.held_out.n_models} unseen models estimated from {n_items} of "
        f"{first.bank.n_items:,} items; errors in points, over {result.n_repeats} repeats"
    )
    print_rows(rows, output_format, "quickstart", title=title)
    note("The models are tiny language models of our own. No checkpoint of a held-out training run is in the bank.")
    for text in result.notes:
        note(text)
    note("Written: " + ", ".join(str(path) for path in result.files.values()))
    bank, selection, responses = (result.files[name] for name in ("bank", "selection", "responses"))
    note(f"Next: itembank info {bank}")
    note(f"      itembank estimate {bank} {responses} --selection {selection}")


def _write_page(result: "QuickstartResult", path: Path) -> None:
    """Write the page and say where it is; if a package is missing, say so."""
    from itembank.errors import MissingDependencyError  # noqa: PLC0415
    from itembank.pages.quickstart import quickstart_page  # noqa: PLC0415

    try:
        write_report(quickstart_page(result, command=typed_command()), path)
    except MissingDependencyError as error:
        note(f"No report was written: {error}")


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
    """Say what 'auto' chose."""
    return f"{asked}: {used}" if asked == "auto" else asked


@click.command("sample-data", cls=Command)
@folder_option("sample", "the two files")
@format_option
def sample_data_command(*, output: Path, output_format: str) -> None:
    """Write example results of past models and of a new one, to try the commands on.

    past.csv has the answers of 110 small language models to 680 items of five tasks, new-model.csv those of another
    model. The models are tiny, and this project trained them. The columns are those of your own results: model_id,
    item_id, scenario, response.

    \b
      itembank sample-data
      itembank import sample/past.csv -o responses.parquet
    """  # noqa: D301
    from itembank.readers.builtin import NEW, PAST, write_sample_data  # noqa: PLC0415

    past, new = write_sample_data(output)
    rows = [
        {"file": str(output / name), "models": responses.n_models, "items": responses.n_items}
        for name, responses in ((PAST, past), (NEW, new))
    ]
    print_rows(rows, output_format, "sample-data", title="Sample data")
    note(f"Next: itembank import {output / PAST} -o responses.parquet")
