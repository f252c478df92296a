"""`itembank audit`: items of a benchmark that may be wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.auditing.item_audit_names import ORDERS, REASONS, SAME_FOR_ALL
from itembank.cli.command import Command
from itembank.cli.main import EXIT_FAILED
from itembank.cli.new_results import read_results
from itembank.cli.options import FILE, BankPath, format_option, ids_of_file, refuse_unused
from itembank.cli.render import note, print_record, print_rows, progress, warnings_as_notes
from itembank.cli.report_options import checked_report_path, typed_command, write_report
from itembank.errors import visible

if TYPE_CHECKING:
    import polars as pl

    from itembank.auditing.differential_results import DifferentialItems
    from itembank.auditing.item_audit_results import ItemAudit

PAGES = (".html", ".htm")
SUFFIXES = (".csv", ".parquet", *PAGES)
COLUMNS = ("item_id", "reason", "P(defect)", "mean", "item-rest", "evidence", "text")
"""What a terminal has room for; the other formats and the written table have the rest."""
LONGEST_TEXT = 120
"""Characters of an item's text that a table shows."""


def _check_output(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse before the work what could not be written after it."""
    if path is not None:
        from itembank.files.atomic import check_destination  # noqa: PLC0415

        if path.suffix.lower() not in SUFFIXES:
            raise click.BadParameter(f"must end in .csv, .parquet or .html, got {path.name!r}.")
        if path.suffix.lower() in PAGES:
            return checked_report_path(ctx, parameter, path)
        check_destination(path)
    return path


@click.command("audit", cls=Command)
@click.argument("source", metavar="BANK|RESPONSES", nargs=-1, required=True, type=BankPath(file_okay=True))
@click.option(
    "--known",
    type=FILE,
    help="Items known to be bad (ids one a line, or a table with a column item_id): learn from them what a fault "
    "looks like, and say how well they are found.",
)
@click.option("--choices", type=FILE, help="Table of the answers given: model_id, item_id, choice.")
@click.option(
    "--by",
    metavar="COLUMN",
    help="Also find items that differ between models: family, size, date, ...: a column of the model table.",
)
@click.option("--clusters", metavar="COLUMN", help="--by: models with the same value here, a base model, count as one.")
@click.option("--no-duplicates", is_flag=True, help="Do not look for duplicates, which takes longest.")
@click.option(
    "--sort",
    "order",
    type=click.Choice(list(ORDERS)),
    default="probability",
    show_default=True,
    help="Which come first: those most probably defective; those on which the best models fail though not on others "
    "like them; or those whose answers another key explains best.",
)
@click.option(
    "--reason",
    "reasons",
    type=click.Choice(list(REASONS)),
    multiple=True,
    help="Print the items with this reason. Repeatable.",
)
@click.option(
    "-n", "--rows", "n_rows", type=click.IntRange(min=1), default=20, show_default=True, help="Flagged items to print."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=_check_output,
    metavar="FILE",
    help="Write all items to this file: .csv, .parquet, or a page to look at and to send, .html.",
)
@click.option(
    "--fail-on",
    type=click.Choice(list(REASONS)),
    multiple=True,
    help="Exit with code 1 when an item has this reason. Repeatable.",
)
@format_option
def command(
    *,
    source: tuple[Path, ...],
    known: Path | None,
    choices: Path | None,
    by: str | None,
    clusters: str | None,
    no_duplicates: bool,
    order: str,
    reasons: tuple[str, ...],
    n_rows: int,
    output: Path | None,
    fail_on: tuple[str, ...],
    output_format: str,
) -> None:
    """Find items with a wrong key, without sense, asked twice, or unlike for some models.

    RESPONSES are results of at least five models, better thirty, the best among them. What is flagged should be read
    by a person: answers show that something is odd, not what.

    \b
      itembank audit responses.parquet -o audit.html
      itembank audit responses.parquet --reason wrong-key --fail-on wrong-key
      itembank audit responses.parquet --by family --format json
    """  # noqa: D301
    from itembank.auditing.item_audit import audit_items  # noqa: PLC0415

    refuse_unused(("clusters", by is not None, "--by COLUMN"))
    with warnings_as_notes():
        given = _read(source)
        with progress("audit") as report:
            audit = audit_items(
                given,
                known=None if known is None else ids_of_file(known),
                choices=choices,
                by=by,
                clusters=clusters,
                duplicates=not no_duplicates,
                order=order,
                progress=report,
            )
    chosen = audit.having(reasons) if reasons else audit.flagged
    if output is not None:
        _write(audit, output)
    _print(audit, chosen.head(n_rows), output_format)
    if chosen.is_empty():
        note(f"No item is {' or '.join(dict.fromkeys(reasons)) or 'flagged'}.")
    if chosen.height > n_rows:
        note(f"{n_rows} of {chosen.height} shown: -n for more, -o FILE for all.")
    if output is None and output_format == "table":
        note("To see this as a page: -o FILE.html")
    found = [f"{audit.counts[reason]} {reason}" for reason in dict.fromkeys(fail_on) if audit.counts[reason]]
    if found:
        click.echo(f"Failed: there are items flagged {', '.join(found)} (--fail-on).", err=True)
        click.get_current_context().exit(EXIT_FAILED)


def _read(source: tuple[Path, ...]) -> Any:
    """Load the bank, or read the responses."""
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.files.hub import is_hub_name  # noqa: PLC0415

    is_bank = len(source) == 1 and (is_hub_name(source[0]) or (source[0] / "bank.json").is_file())
    return load_bank(source[0]) if is_bank else read_results(source)


def _write(audit: "ItemAudit", output: Path) -> None:
    """Write all items, whole or not at all."""
    from itembank.files.atomic import replacing_file  # noqa: PLC0415
    from itembank.pages.audit_page import audit_page  # noqa: PLC0415
    from itembank.spreadsheets import write_guarded_csv  # noqa: PLC0415

    kind = output.suffix.lower()
    if kind in PAGES:
        write_report(audit_page(audit, command=typed_command()), output)
    else:
        with replacing_file(output) as temporary:
            write_guarded_csv(audit.table, temporary) if kind == ".csv" else audit.table.write_parquet(temporary)
        note(f"{audit.table.height} items written to {output}.")


def _print(audit: "ItemAudit", chosen: "pl.DataFrame", output_format: str) -> None:
    """Print the facts and the items."""
    facts, columns = audit.to_dict(), COLUMNS if "text" in chosen.columns else COLUMNS[:-1]
    if output_format != "table":
        print_record(facts, "items", chosen.to_dicts(), output_format)
        return
    told = {"n_models": facts["n_models"], "flagged": audit.said}
    told |= {name: f"{count}: {_meaning(name)}" for name, count in audit.counts.items() if count}
    print_record(
        told | _known_words(audit),
        "items",
        [_row(row) for row in chosen.to_dicts()],
        "table",
        title="Item audit",
        heading=f"Items by {audit.order}",
        columns=columns if chosen.height else (),
        least=("text", "item-rest", "mean"),
    )
    if audit.differential is not None:
        _print_groups(audit.differential)
    for caution in audit.cautions:
        note(f"Note: {visible(caution)}")


def _meaning(reason: str) -> str:
    """Say what a reason means, and how to see items that are only counted."""
    return f"{REASONS[reason]}; not flagged: --reason {reason}" if reason in SAME_FOR_ALL else REASONS[reason]


def _known_words(audit: "ItemAudit") -> dict[str, str]:
    """Say how well known bad items are found."""
    if audit.labels is None:
        return {}
    first = "".join(f", {share:.0%} of the first {n} flagged" for n, share in audit.labels.first.items())
    return {"known to be bad": f"{audit.labels.n_bad}: AUC {audit.labels.area:.3f}{first}"}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Make a row as a terminal shows it."""
    text = row.get("text")
    return {
        "item_id": row["item_id"],
        "reason": row["reasons"],
        "P(defect)": f"{row['probability']:.2f}",
        "mean": None if row["mean"] is None else f"{row['mean']:.2f}",
        "item-rest": f"{row['item_rest']:.2f}",
        "evidence": row["evidence"],
        "text": None if text is None else text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}...",
    }


def _print_groups(differential: "DifferentialItems") -> None:
    """Print what differing items do to scores."""
    rows = [
        {
            "group": row["group"],
            "scenario": row["scenario"],
            "points at equal ability": f"{100.0 * row['score_effect']:+.1f}",
            "items that differ": f"{row['n_flagged']}/{row['n_items']}",
            "points by these": f"{100.0 * row['flagged_effect']:+.1f}",
        }
        for row in differential.scores.to_dicts()
    ]
    print_rows(rows, "table", title=f"Scores by {differential.column}")
    for one in differential.notes:
        note(f"Note: {visible(one)}")
