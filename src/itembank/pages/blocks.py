"""What a page is made of: frozen pieces that say what to show, and not how it looks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from itembank.bank.bank_places import title_of
from itembank.errors import ParameterError, shell_word, visible
from itembank.output_keys import source
from itembank.pages.pictures import Columns, save_picture, svg_address
from itembank.pages.theme import count
from itembank.responses.responses import DEFAULT_SCENARIO
from itembank.tables import plural
from itembank.tabular import Fact

if TYPE_CHECKING:
    import polars as pl

    from itembank.bank.banks import Bank

Pair = tuple[str, str]
Kind = Literal["text", "prose", "id", "number", "score", "percent", "points", "count", "flag", "response"]
"""How a cell is written: 'prose' is text of several words, which gets room; 'score', 'percent' and 'points' take
fractions (a difference of scores is in 'points', with its sign), 'flag' true or false, 'response' is right or wrong."""

SAYS_NOTHING = r"(?i)(banks?|responses?|results?|answers?|data|mine|past|all)[-_ .\d]*"
"""Names of files and folders that are no titles."""


@dataclass(frozen=True, slots=True)
class Data:
    """A table that charts and tables of one page share; it stands in the page once.

    Attributes
    ----------
    name : str
        Letters, digits and hyphens; unique within the page.
    columns : mapping of str to sequence
        Columns of equal length. Their names are ours, never a stranger's: charts take them as field names.
    """

    name: str
    columns: Columns

    def __post_init__(self) -> None:
        sizes = {len(values) for values in self.columns.values()}
        if len(sizes) > 1:
            raise ParameterError(f"columns of {self.name!r} must be equally long, got {sorted(sizes)}.")

    def __len__(self) -> int:
        return next((len(values) for values in self.columns.values()), 0)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str  # Of the data's column
    title: str  # What stands above it
    kind: Kind = "text"  # How its cells are written
    digits: int = 1  # Decimal places of numbers, percentages and points
    explanation: str = ""  # What the column means, shown when the pointer or the focus rests on its head
    has_menu: bool = False  # Whether rows can be chosen by this column's values, from a menu


def heads(*names: str) -> tuple[Column, ...]:
    """Return the columns of these names as `output_keys.json` heads them, here or in a package that brings pages."""
    own = source(is_own=True)["heads"]
    known = own if own.keys() >= set(names) else source()["heads"]
    return tuple(Column(name, *known[name]) for name in names)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that can be sorted, searched and downloaded."""

    caption: str
    data: Data
    columns: tuple[Column, ...]
    n_shown: int = 15
    note: str = ""
    entries: tuple["Facts", ...] = ()  # What the id of each of the first rows leads to

    def __post_init__(self) -> None:
        unknown = [one.name for one in self.columns if one.name not in self.data.columns]
        if unknown:
            raise ParameterError(f"columns of the table {self.caption!r} must be in its data; not there: {unknown}.")

    @classmethod
    def of(
        cls,
        caption: str,
        name: str,
        rows: "Columns | pl.DataFrame | Sequence[Mapping[str, Any]]",
        columns: Iterable[Column],
        **more: Any,
    ) -> Self:
        """Make a table with data of its own, of this name: from columns, a frame or records, which may hold more."""
        columns = tuple(columns)
        own: Columns = {
            one.name: [row[one.name] for row in rows] if isinstance(rows, Sequence) else rows[one.name]
            for one in columns
        }
        return cls(caption, Data(name, own), columns, **more)


@dataclass(frozen=True, slots=True, repr=False)
class Chart:
    """A picture with its text alternative and the table behind it.

    Attributes
    ----------
    title : str
        What the picture shows, as a sentence.
    spec : mapping
        Vega-Lite, without data of its own: ``{"data": {"name": ...}}`` names one of `data`, the first by default.
        Colours are those of `itembank.pages.theme`: "@main", "@faint", ...
    data : tuple of Data
    alternative : str
        The same in words, for who cannot see it.
    table : Table or None
        The numbers behind it, folded away below.
    note : str
        What the picture leaves out, how bands are meant.
    filters : Table or None
        A table with the columns of the picture's axes, which shows only the rows within its selection 'brush'.
    """

    title: str
    spec: Mapping[str, Any]
    data: tuple[Data, ...]
    alternative: str
    table: Table | None = None
    note: str = ""
    filters: Table | None = None

    def __repr__(self) -> str:
        return f"Chart {self.title!r}; .save('chart.png') writes it"

    def save(self, path: str | Path) -> Path:
        """Write the picture with its title and note as PNG, SVG or PDF by the file's name, and return where.

        Raises
        ------
        ParameterError
            For another ending, or a place where no file can be made.
        MissingDependencyError
            Without what the extra 'report' installs.
        """
        return save_picture(self.spec, self._tables(), path, title=self.title, note=self.note)

    def svg_address(self) -> str:
        """Return the picture alone as SVG in a data address, which runs nothing."""
        return svg_address(self.spec, self._tables())

    def _tables(self) -> dict[str, Columns]:
        return {one.name: one.columns for one in self.data}

    def _repr_html_(self) -> str:
        title, words, note = (escape(visible(one)) for one in (self.title, self.alternative, self.note))
        image = f'<img src="{self.svg_address()}" alt="{words}">'
        return f"<figure><figcaption><b>{title}</b></figcaption>{image}<p>{note}</p></figure>"


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; '' leaves nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Caution:
    """A sentence that a reader must not miss."""

    text: str


def noted(note: str, *, is_clause: bool = False) -> Text | Caution:
    """Return a note as a caution, or as a paragraph if it warns of nothing; a clause becomes a sentence."""
    text = f"{note[:1].upper()}{note[1:]}." if is_clause else note
    return Text(text) if isinstance(note, Fact) else Caution(text)


@dataclass(frozen=True, slots=True)
class Answer:
    """The number that the page is opened for."""

    label: str  # What it is of
    value: str
    interval: str = ""  # In words: "73.9 to 80.3 points, 95 % interval"
    words: str = ""  # What it was made from
    citation: str = ""  # What the copy button copies: number, interval, items, bank and version in a line
    tone: Literal["", "good", "bad", "open"] = ""  # What a verdict is coloured by; its word says the same


@dataclass(frozen=True, slots=True)
class Answers:
    """Several answers side by side."""

    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, one a line."""

    pairs: tuple[tuple[str, str], ...]
    title: str = ""
    are_commands: bool = False


Block = Text | Caution | Answer | Answers | Facts | Table | Chart


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page with its heading."""

    title: str
    blocks: tuple[Block, ...]
    lead: str = ""


def bank_title(bank: "Bank") -> str:
    """Return what people call a bank: its name, what a ready one is of, its source, its folder, or what it has."""
    folder = bank.cache.folder
    ready = re.split("[:,]", title_of(folder))[0]
    source = bank.cache.source.partition("@")[0].rpartition("/")[2]
    place = "" if folder is None else folder.resolve().name
    return bank.name or ready or source or benchmark_title(place, bank.targets.scenarios, bank.n_total)


def benchmark_title(file: str, scenarios: Sequence[str], n_items: int) -> str:
    """Return what a benchmark is called that is known by a file's name: this, or what it has where it says nothing."""
    if file and not re.fullmatch(SAYS_NOTHING, file):
        return file
    if len(scenarios) == 1 and scenarios[0] != DEFAULT_SCENARIO:
        return scenarios[0]
    inside = f" in {len(scenarios):,} scenarios" if len(scenarios) > 1 else ""
    return f"{plural(n_items, 'question')}{inside}"


def bank_argument(bank: "Bank") -> str:
    """Return how a command on this machine names a bank."""
    folder = bank.cache.folder
    return shell_word(bank.cache.source or folder or "BANK")


def bank_provenance(bank: "Bank") -> tuple[Pair, ...]:
    """Return what says which bank the numbers are from."""
    named = f"{bank.name} {bank.version}, " if bank.name else ""
    calibration = bank.calibration
    return (
        ("Bank", f"{named}{bank.bank_id}"),
        ("Score", bank.target_id),
        ("Past models", count(bank.n_calibration_models)),
        ("Questions", count(bank.n_total)),
        *([] if bank.newest is None else [("Newest past model", str(bank.newest))]),
        ("Item model", f"{calibration.item_model}, {plural(calibration.n_dims, 'dimension')}, by {calibration.method}"),
    )
