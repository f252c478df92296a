"""`itembank push`: a bank to the Hugging Face Hub."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import bank_argument, format_option
from itembank.cli.publishing_options import (
    column_options,
    include_data_option,
    license_option,
    note_columns,
    note_files,
)
from itembank.cli.render import is_quiet, note, print_rows, progress, warnings_as_notes


@click.command("push", cls=Command)
@bank_argument
@click.argument("place", metavar="HF:OWNER/NAME")
@click.option("--private", is_flag=True, help="Make the repository private, where it is new.")
@click.option(
    "--no-responses", is_flag=True, help="Leave out past models and their responses. The card says what needs them."
)
@license_option
@column_options
@include_data_option
@click.option("--message", default="Push a bank of itembank", show_default=True, help="Message of the commit.")
@format_option
def command(
    *,
    bank: Path,
    place: str,
    private: bool,
    no_responses: bool,
    license_name: str,
    include_columns: tuple[str, ...],
    drop_columns: tuple[str, ...],
    include_data: bool,
    message: str,
    output_format: str,
) -> None:
    """Push a bank to the Hugging Face Hub, with a card that says what it holds and how exact it is.

    Whoever may read it can then write hf:owner/name wherever a bank is taken. Needs pip install huggingface_hub and
    hf auth login. Of models, columns that nothing is known to need stay here unless --include-column names them.

    \b
      itembank push bank hf:me/bank --license cc-by-4.0
      itembank push bank hf:me/bank --private --no-responses
    """  # noqa: D301
    from itembank.files.hub import quieten  # noqa: PLC0415
    from itembank.publishing.hub import PushSpec, push  # noqa: PLC0415

    if is_quiet():
        quieten()
    spec = PushSpec(
        private=private,
        with_responses=not no_responses,
        license=license_name,
        include_columns=include_columns,
        drop_columns=drop_columns,
        include_data=include_data,
        message=message,
    )
    with warnings_as_notes(), progress("push") as report:
        done = push(bank, place, spec, progress=report)
    row = {"bank": done.bank_id, "name": done.name, "files": len(done.files)}
    print_rows([row], output_format, title=f"Pushed {bank}")
    note_files(done.files)
    note_columns(done.columns, done.left_out)
    note(f"Look at it: {done.address}")
