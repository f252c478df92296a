"""`itembank publish-tiny`: a small subset of a benchmark, with all that makes a score of the answers to it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from itembank.cli.command import Command
from itembank.cli.options import FILE, bank_argument, format_option, refuse_unused
from itembank.cli.publishing_options import (
    column_options,
    include_data_option,
    license_option,
    note_columns,
    note_files,
    note_tasks,
)
from itembank.cli.render import note, print_rows, progress, warnings_as_notes

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.bank.selections import Selection
    from itembank.harnesses.lm_eval.export import ExportedTasks


@click.command("publish-tiny", cls=Command)
@bank_argument
@click.option(
    "-n", "--n-items", type=click.IntRange(min=1), default=100, show_default=True, help="How many items to choose."
)
@click.option("--selection", type=FILE, help="Publish these items.  [default: choose them]")
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to publish."
)
@click.option("--name", default="", help="What it is called.  [default: as the folder]")
@license_option
@column_options
@click.option(
    "--tasks", "has_tasks", is_flag=True, help="Also write tasks of lm-evaluation-harness that run the items."
)
@click.option(
    "--include-path",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="--tasks: folder of the original tasks, where lm_eval does not bring them. What the chosen tasks need of "
    "it is copied.",
)
@include_data_option
@click.option("--force", is_flag=True, help="Replace what was published there before.")
@format_option
def command(
    *,
    bank: Path,
    n_items: int,
    selection: Path | None,
    output: Path,
    name: str,
    license_name: str,
    include_columns: tuple[str, ...],
    drop_columns: tuple[str, ...],
    has_tasks: bool,
    include_path: Path | None,
    include_data: bool,
    force: bool,
    output_format: str,
) -> None:
    """Publish a small subset of a benchmark: items, weights and parameters, without past models' responses.

    The folder is a bank that itembank estimate takes as it is, with the intervals of the whole bank. It also holds the
    items as a table, a scoring program that needs numpy alone, a figure of how exact it is, and a README. Needs
    pip install vl-convert-python.

    \b
      itembank publish-tiny bank -n 100 -o tiny
      itembank estimate tiny new-model.csv
      itembank push tiny hf:me/tiny
      itembank publish-tiny bank -n 100 -o tiny --tasks
      lm_eval --include_path tiny/tasks --tasks tiny --model ... --log_samples --output_path out
    """  # noqa: D301
    from itembank.publishing.publishable import file_sizes  # noqa: PLC0415
    from itembank.publishing.tiny import TinySpec, publish_tiny  # noqa: PLC0415

    refuse_unused(
        ("n_items", selection is None, "items that are chosen here, not with --selection FILE"),
        ("include_path", has_tasks, "--tasks"),
        ("include_data", include_path is not None, "--include-path"),
    )
    spec = TinySpec(name, license_name, include_columns, drop_columns, include_data)
    exported: list[ExportedTasks] = []

    def write_tasks(folder: Path, bank: "Bank", selection: "Selection") -> None:
        from itembank.harnesses.lm_eval.export import export_tasks  # noqa: PLC0415
        from itembank.publishing.tiny import GROUP  # noqa: PLC0415

        done = export_tasks(bank, selection, folder, name=GROUP, include_path=include_path, include_data=include_data)
        exported.append(done)

    with warnings_as_notes(), progress("publish-tiny") as report:
        tiny = publish_tiny(
            bank,
            output,
            n_items,
            selection=selection,
            spec=spec,
            write_tasks=write_tasks if has_tasks else None,
            overwrite=force,
            progress=report,
        )
    held_out = tiny.held_out
    row = {
        "bank": tiny.bank.bank_id,
        "items": tiny.selection.n_items,
        "n_total": tiny.bank.n_items,
        "mean_error": float("nan") if held_out is None else held_out.error,
        "coverage": float("nan") if held_out is None else held_out.coverage,
    }
    print_rows([row], output_format, title=f"Published in {output}; errors of past models left out")
    note_files(file_sizes(output))
    note_columns((), tiny.left_out)
    for one in exported:
        note_tasks(one.notes)
    note(f"Next: itembank estimate {output} new-model.csv")
