"""Where a bank is: a folder, a name of the Hub (``hf:owner/name``), or the name of a ready bank (``bank:name``).

Ready banks are those that the user built by a recipe, and those that come with the package; the user's go first.
"""

import os
import re
from pathlib import Path

from itembank.bank.bank_records import RECORD
from itembank.errors import BankError, ItembankError, ParameterError, did_you_mean, quoted, visible
from itembank.files.documents import read_toml
from itembank.files.hub import is_hub_name, parse_hub_name

PREFIX = "bank:"
NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
PACKAGED = Path(__file__).resolve().parents[1] / "ready"
"""Recipes, ``name.toml``, and the banks that come with the package, in folders of their names."""
BESIDE_BANK = "recipe.toml"
"""The recipe that a bank was built by, in the bank's folder; with the state of the source that was read."""
VARIABLE = "ITEMBANK_BANKS"


def built_folder() -> Path:
    """Return where banks built by recipes are kept; it need not exist. No cache: nothing in it is removed."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    import platformdirs  # noqa: PLC0415 (only ready banks need it)

    return platformdirs.user_data_path("itembank") / "banks"


def is_bank_name(place: str | Path) -> bool:
    """Whether a bank's place is a name, of the Hub or of a ready bank, and not a folder."""
    return is_hub_name(place) or str(place).startswith(PREFIX)


def check_bank_name(place: str | Path) -> None:
    """Raise as `load_bank` does for a name that is none, or that of no ready bank; nothing is pulled."""
    if is_hub_name(place):
        parse_hub_name(place)
    else:
        ready_folder(place)


def ready_banks() -> dict[str, Path]:
    """Return the folders of the ready banks that are on this machine, by name."""
    found: dict[str, Path] = {}
    for folder in (built_folder(), PACKAGED):
        places = sorted(folder.iterdir()) if folder.is_dir() else []
        for place in places:
            if NAME.fullmatch(place.name) and (place / RECORD).is_file():
                found.setdefault(place.name, place)
    return found


def title_of(folder: Path | None) -> str:
    """Return the title of a ready bank in a folder, as its recipe has it; empty for other banks."""
    path = None if folder is None else folder / BESIDE_BANK
    if path is None or not path.is_file():
        return ""
    try:
        return visible(str(read_toml(path).get("title", "")))
    except (ItembankError, OSError):
        return ""


def packaged_recipes() -> dict[str, Path]:
    """Return the recipes that come with the package, by name."""
    return {path.stem: path for path in sorted(PACKAGED.glob("*.toml"))}


def ready_folder(place: str | Path) -> Path:
    """Return the folder of a ready bank.

    Raises `ParameterError` when the name is none, or there is neither a bank nor a recipe of it; `BankError` when there
    is a recipe, and nobody has built the bank yet.
    """
    name = str(place).removeprefix(PREFIX)
    known, recipes = ready_banks(), packaged_recipes()
    if name in known:
        return known[name]
    if name in recipes:
        size = read_toml(recipes[name]).get("megabytes")
        raise BankError(
            f"{PREFIX}{name} is not built yet. Build it: itembank bank build {name} (needs a connection, about "
            f"{size:,} MB)."
        )
    names = sorted({*known, *recipes})
    raise ParameterError(
        f"a ready bank must be named {PREFIX}NAME, NAME one of {', '.join(names)}, got {quoted(place)}."
        f"{did_you_mean(name, names)}"
    )
