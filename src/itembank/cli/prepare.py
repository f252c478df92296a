"""`itembank prepare`: the slow work behind calibrated intervals, done once and kept with the bank."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import bank_argument, format_option, parallel_option
from itembank.cli.render import note, print_rows, progress, warnings_as_notes


@click.command("prepare", cls=Command)
@bank_argument
@parallel_option
@format_option
def prepare_command(*, bank: Path, output_format: str) -> None:
    """Get a bank ready for calibrated estimates, and keep that in its folder.

    Calibrated intervals rest on fits of the items without each tenth (fifth) of the bank's models. Commands that need
    these fits make them, and keep them in your cache folder ($ITEMBANK_CACHE). This command keeps them in the bank's
    own folder, so that they go wherever the bank goes. itembank calibrate does the same unless --no-folds is given.

    \b
      itembank prepare bank
    """  # noqa: D301
    from itembank.estimation.folds import folds  # noqa: PLC0415
    from itembank.sessions.preparation import prepare  # noqa: PLC0415

    with warnings_as_notes(), progress("prepare") as report:
        loaded = prepare(bank, keep_in_bank=True, progress=report)
    n_fits = len(folds(loaded))
    row = {"bank": loaded.bank_id, "models": loaded.n_models, "fits": n_fits}
    print_rows([row], output_format, title=f"Bank {bank}")
    if not n_fits:
        note("The bank has too few models to leave some out, so its intervals are those of the item model.")
