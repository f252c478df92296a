"""`itembank pull`: a bank of the Hugging Face Hub into a folder."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import format_option
from itembank.cli.render import is_quiet, note, print_rows


@click.command("pull", cls=Command)
@click.argument("place", metavar="HF:OWNER/NAME[@REVISION]")
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of the bank."
)
@click.option("--force", is_flag=True, help="Replace the bank that is there.")
@format_option
def command(*, place: str, output: Path, force: bool, output_format: str) -> None:
    """Copy a bank of the Hugging Face Hub into a folder of yours, after its files were checked.

    Every command takes hf:owner/name in the place of a bank, too: then it is downloaded once, and found again without
    a connection. A revision is a branch, a tag or a commit. Needs pip install huggingface_hub.

    \b
      itembank pull hf:me/bank -o bank
      itembank pull hf:me/bank@v1.0 -o bank
    """  # noqa: D301
    from itembank.files.hub import quieten  # noqa: PLC0415
    from itembank.publishing.hub import pull_bank  # noqa: PLC0415

    if is_quiet():
        quieten()
    bank = pull_bank(place, output, overwrite=force)
    row = {"bank": bank.bank_id, "name": bank.cache.source, "models": bank.n_models, "items": bank.n_items}
    print_rows([row], output_format, title=f"Bank {output}")
    if bank.published is not None and bank.published.subset is not None:
        note("Programs are not pulled: score.py and tasks, where its README names them, stay on the Hub.")
