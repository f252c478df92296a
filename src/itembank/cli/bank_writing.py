"""What commands share that write a changed bank."""

from pathlib import Path
from typing import TYPE_CHECKING

from itembank.cli.command import Function
from itembank.cli.options import format_option, option, output_option
from itembank.cli.render import note, print_rows

if TYPE_CHECKING:
    from itembank.bank.banks import Bank


def writing(function: Function) -> Function:
    """Add what commands take that write a new bank: `-o`, `--force`, `--format`."""
    for one in (
        format_option,
        option("--force", "Replace the bank that stands at -o.", bool),
        output_option("the new bank"),
    ):
        function = one(function)
    return function


def write_bank(bank: "Bank", output: Path, output_format: str, *, force: bool) -> None:
    """Write a changed bank and say what it is."""
    from itembank.bank.bank_files import save_bank  # noqa: PLC0415

    save_bank(bank, output, overwrite=force)
    row = {
        "bank": bank.bank_id,
        "name": bank.name or None,
        "version": bank.version,
        "target_id": bank.target_id,
        "models": bank.n_models,
        "items": bank.n_items,
        "items_aside": bank.n_aside,
    }
    print_rows([row], output_format)
    note(f"Written to {output}.")


def loaded_for_change(bank: Path, output: Path, *, force: bool) -> "Bank":
    """Load a bank once it is sure that the new one can be written."""
    from itembank.bank.bank_files import check_bank_destination, load_bank  # noqa: PLC0415

    check_bank_destination(output, overwrite=force)
    return load_bank(bank)
