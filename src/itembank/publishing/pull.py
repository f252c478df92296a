"""A bank of the Hub as a folder of one's own."""

import shutil
from pathlib import Path

from itembank.bank.bank_files import check_bank_destination, load_bank
from itembank.bank.banks import Bank
from itembank.bank.hub_pull import is_file_of_bank
from itembank.errors import BankError
from itembank.files.atomic import replacing_folder
from itembank.files.hub_names import parse_hub_name


def pull_bank(place: str | Path, folder: str | Path, *, overwrite: bool = False) -> Bank:
    """Copy the bank ``hf:owner/name[@revision]`` into a folder, after all its files were checked.

    Returns
    -------
    Bank
        Whose `cache.source` says the commit it is of.

    Raises
    ------
    ParameterError
        When the name is not one of the Hub, or nothing can be written at `folder`.
    BankError, IntegrityError, MissingDependencyError
        As `load_bank`; and when something stands at `folder`.
    """
    folder = Path(folder)
    check_bank_destination(folder, overwrite=overwrite)
    parse_hub_name(place)
    bank = load_bank(place)
    came_to = bank.cache.folder
    if came_to is None:
        raise BankError(f"{place} did not come to a folder of this machine. Pull it again.")
    with replacing_folder(folder) as new:
        for path in sorted(one for one in came_to.rglob("*") if is_file_of_bank(one.relative_to(came_to).as_posix())):
            target = new / path.relative_to(came_to)
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target)  # through the client's links: what stands in the folder is ordinary files
    return bank
