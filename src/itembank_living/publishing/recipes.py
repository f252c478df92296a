"""`Recipe`: how a ready bank is built, one TOML file; and the list of ready banks, which reads records alone."""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from itembank.bank.bank_places import BESIDE_BANK, NAME, PREFIX, built_folder, packaged_recipes, ready_banks
from itembank.bank.bank_records import read_record
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ItembankError, ParameterError, did_you_mean, quoted
from itembank.files.documents import errors_name, fields_of, read_toml
from itembank.readers.reading_specs import ReadingSpec, check_format
from itembank.responses.score_names import Across, Within
from itembank_harnesses.public.sources import Archive, Fetched, HubFiles, PublicSource
from itembank_harnesses.public.stores import public_source

MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
"""What a record raises that is not laid out as one of ours."""
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class OwnSource:
    """Where the results of a recipe are, where they are in no public source that itembank knows.

    An archive or a file is fetched by its address, or files of a data set of the Hugging Face Hub. Without both the
    files must be fetched by hand.
    """

    address: str  # A page that says what they are
    licence: str  # As the page states it
    layout: str  # What a folder of the files looks like
    reader: str  # As `itembank import --as`: the program whose results they are, or a layout of tables
    archive: Archive | None = None
    hub: HubFiles | None = None

    def __post_init__(self) -> None:
        check_format("the reader of a source", self.reader)
        if self.archive is not None and self.hub is not None:
            raise ParameterError("a source must have an archive or files of the Hub, got both. Leave one out.")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a ready bank is built.

    Attributes
    ----------
    title : str
    source : str or OwnSource
        The name of a public source (`itembank download` lists them), or where the results are.
    megabytes : int
        About how much is fetched.
    harnesses : tuple of str
        Programs that run its items by the ids that they have here.
    licence : str
        Of the results; empty: as the source states it.
    read : mapping
        Fields of `ReadingSpec`, in place of those that the source has by itself.
    files : tuple of str
        Patterns of the files to fetch and to read, in place of the source's.
    revision : str
        The commit to fetch; empty for the newest.
    models : tuple of str
    n_models : int or None
        Sources that keep one repository a model: which models to fetch, or how many, evenly among all by their names.
    exclude_models : tuple of str
        Models that are left out.
    least_answered : float
        Models that answered less than this fraction of the items are left out.
    least_models, least_items : int
        With fewer nothing is built: the source is not what it was.
    within, across : str
        How items make scores, as for `calibrate`.
    dims : int or 'auto'
        Number of abilities; 'auto' tries several, where models are many enough to tell.
    calibrate : Variational
        Rarer choices of the calibration; with several `n_dims` of its own `dims` is ignored.
    sizes : tuple of int
        Numbers of items to run that errors are measured for; the first is taken unless a number is given.
    names : bool
        Whether the bank tells who its past models are, beside their scores: where both are public.
    notes : tuple of str
        What it cannot do, and what is not known of it.
    fetched : Fetched or None
        In the folder of a bank: the state of the source that it was built from.
    """

    title: str
    source: str | OwnSource
    megabytes: int
    harnesses: tuple[str, ...] = ()
    licence: str = ""
    read: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    revision: str = ""
    models: tuple[str, ...] = ()
    n_models: int | None = None
    exclude_models: tuple[str, ...] = ()
    least_answered: float = 1.0
    least_models: int = 20
    least_items: int = 20
    within: Within = "micro"
    across: Across = "scenarios"
    dims: int | Literal["auto"] = "auto"
    calibrate: Variational = field(default_factory=Variational)
    sizes: tuple[int, ...] = (100, 30, 60, 200)
    names: bool = False
    notes: tuple[str, ...] = ()
    fetched: Fetched | None = None

    def __post_init__(self) -> None:
        ReadingSpec(**self.read)
        if not 0.0 < self.least_answered <= 1.0:
            raise ParameterError(f"least_answered must be above 0 and at most 1, got {self.least_answered}.")
        if not self.sizes or min(self.sizes) < 1 or len(set(self.sizes)) < len(self.sizes):
            raise ParameterError(f"sizes must be numbers of items from 1 on, each once, got {self.sizes}.")
        if self.dims != "auto" and self.dims < 1:
            raise ParameterError(f"dims must be 'auto' or 1 at least, got {self.dims}.")
        if self.revision and not REVISION.fullmatch(self.revision):
            raise ParameterError(f"a revision must be a commit or a tag, got {quoted(self.revision)}.")
        download = self.public("recipe").download
        is_one_a_model = isinstance(download, HubFiles) and download.is_one_a_model
        if is_one_a_model != bool(self.models or self.n_models):
            raise ParameterError(
                "the source keeps one repository a model, so models or n_models must be given."
                if is_one_a_model
                else "the source is fetched whole, so models and n_models must be left out."
            )

    def public(self, name: str) -> PublicSource:
        """Return the source, as this recipe fetches and reads it; `name` is that of a source of its own."""
        if isinstance(self.source, OwnSource):
            own = self.source
            what = (name, self.title, own.licence, own.address, own.layout, own.reader)
            source = PublicSource(*what, download=own.archive or own.hub)
        else:
            source = public_source(self.source)
        download = source.download
        if download is not None and self.files:
            download = replace(download, patterns=self.files)
        if download is not None and self.revision:
            download = download.at(self.revision)
        return replace(source, download=download, choices={**source.choices, **self.read})


def find_recipe(name: str | Path) -> tuple[str, Path]:
    """Return a recipe's name and file: of the package by its name, or any TOML file.

    Raises
    ------
    ParameterError
        When there is none of the name, or a file's name is not one that a bank can have.
    """
    known = packaged_recipes()
    if str(name) in known:
        return str(name), known[str(name)]
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        raise ParameterError(
            f"a recipe must be one of {', '.join(known)}, or a file NAME.toml that is there, got {quoted(name)}."
            f"{did_you_mean(str(name), known)}"
        )
    if not NAME.fullmatch(path.stem):
        raise ParameterError(
            f"the bank is named after its recipe, in small letters, digits, dots and dashes, got {quoted(path.name)}. "
            "Rename the file."
        )
    return path.stem, path


def read_recipe(path: Path) -> Recipe:
    """Read a recipe; raises as `read_choices`, and `ParameterError` for what it lacks."""
    content = read_toml(path)
    with errors_name(path):
        read = content.pop("read", {})
        if not isinstance(read, dict):
            raise ParameterError(f"read must be a table, [read], got {quoted(read)}.")
        missing = [name for name in ("title", "source", "megabytes") if name not in content]
        if missing:
            raise ParameterError(f"a recipe must have {', '.join(missing)} as well.")
        choices = fields_of(content, Recipe, {})
        return Recipe(**choices, read=fields_of(read, ReadingSpec, {}, "read"))


COLUMNS = (
    *("name", "status", "sizes", "n_items", "n_models", "newest", "months_old", "at_items", "error", "half_width"),
    *("coverage", "title", "harnesses", "licence", "source", "revision", "fetched", "megabytes", "notes", "place"),
)
"""Of the list of ready banks."""


def list_ready(*, today: datetime.date | None = None) -> list[dict[str, Any]]:
    """Return a row for each bank that is ready on this machine, and for each recipe whose bank is not.

    Read of the records alone. `status` is 'built' (by the user), 'package', 'recipe' (not built yet) or 'damaged';
    `at_items` is how many items are run unless a number is given; `error` and `half_width` (of 95 % intervals, from 0
    to 1) are cross-validated with that many items, None if none were measured.
    """
    found, recipes = ready_banks(), packaged_recipes()
    today = today or datetime.datetime.now(datetime.UTC).date()
    rows = []
    for name in [*found, *(one for one in recipes if one not in found)]:
        row = {**dict.fromkeys(COLUMNS), "name": f"{PREFIX}{name}", "status": "recipe"}
        try:
            if name in found:
                row |= _of_bank(name, found[name], today)
            else:
                recipe = read_recipe(recipes[name])
                row |= {**_of_recipe(name, recipe), "sizes": sorted(recipe.sizes), "at_items": recipe.sizes[0]}
        except (ItembankError, *MALFORMED):
            row |= {"status": "damaged", "place": str(found.get(name, recipes.get(name)))}
        rows.append(row)
    return rows


def _of_recipe(name: str, recipe: Recipe) -> dict[str, Any]:
    source, state = recipe.public(name), recipe.fetched
    return {
        "n_items": source.n_items,
        "n_models": recipe.n_models or len(recipe.models) or source.n_models,
        "title": recipe.title,
        "harnesses": list(recipe.harnesses),
        "licence": recipe.licence or source.licence,
        "source": source.address,
        "revision": (state and state.revision) or recipe.revision,
        "fetched": (state and state.date) or None,
        "megabytes": recipe.megabytes,
        "notes": list(recipe.notes),
    }


def _of_bank(name: str, place: Path, today: datetime.date) -> dict[str, Any]:
    recipe = read_recipe(place / BESIDE_BANK) if (place / BESIDE_BANK).is_file() else None
    record = read_record(place)
    published = record.get("published") or {}
    measured = {one["n_items"]: one for one in published.get("subsets") or ()}
    usual = next(iter(measured), None)
    newest = published.get("newest")
    return {
        **({} if recipe is None else _of_recipe(name, recipe)),
        "status": "built" if place.parent == built_folder() else "package",
        "sizes": sorted(measured),
        "n_items": record.get("n_total", record["n_items"]),
        "n_models": published.get("n_models", record["n_models"]),
        "newest": newest,
        "months_old": newest and round((today - datetime.date.fromisoformat(newest)).days * 12.0 / 365.25, 1),
        "at_items": usual,
        **{one: measured.get(usual, {}).get(one) for one in ("error", "half_width", "coverage")},
        "place": str(place),
    }
