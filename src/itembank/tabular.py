"""Results in a console, in a notebook and as data frames."""

import html
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from itembank import above
from itembank.errors import MissingDependencyError, missing_package, shown, visible
from itembank.tables import column_names, columns_of, has_points, plain, table_lines, title_lines

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

MOST_LINES, WIDTH = 20, 100
"""Of what a console shows of an object."""
SENTENCE = "sentence"
"""Attribute of an object that says in a line or two what it is, in the place of its type and fields."""
VERBS = ("calibrate", "check", "compare", "estimate", "gate", "info", "plan", "report", "select", "show")
"""Functions of the package that people look for among the methods of what these take."""
TAKEN = {"Bank": "bank", "ResponseMatrix": "responses"}
"""How what the verbs take is called; all else is a result."""
INSTEAD = {
    **dict.fromkeys(("save", "to_html"), "ib.report(result, 'page.html')"),
    **dict.fromkeys(("to_csv", "write_csv"), "to_polars().write_csv(path)"),
    **dict.fromkeys(("to_parquet", "write_parquet"), "to_polars().write_parquet(path)"),
    **dict.fromkeys(("df", "to_frame", "to_df", "to_dataframe"), "to_polars() or to_pandas()"),
    **dict.fromkeys(("shape", "head"), "to_polars(), a table"),
    "items": "item_ids",
    "scores": "models, a table",
    **dict.fromkeys(("difficulty", "difficulties", "discrimination"), "items, a table"),
    "ids": "item_ids or model_ids",
    "to_json": "to_dict() and rows()",
    **dict.fromkeys(
        ("overall", "estimate", "score", "interval", "ci"), "result['overall'], which has value, low and high"
    ),
    "summary": "print(result)",
}
"""What to write for methods of other libraries that people try first."""
TELLING = ("notes", "verdicts", "cautions", "hints")
"""Attributes of results, in the order that they are said: notes, or texts."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader of a result must know; the verb makes it, and tables, JSON, pages and consoles say it.

    Attributes
    ----------
    kind : str
        A word that tells such notes from others: 'better', 'unlike', 'past-model', ...
    text : str
        A sentence or two. Where models are named it follows their names, and begins in small letters.
    more : str
        What follows from it, for pages and those who want all.
    models : tuple of ids
        Whom it is about; empty where it is about all.
    """

    kind: str
    text: str
    more: str = ""
    models: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.in_words(is_brief=True)

    def in_words(self, *, is_brief: bool = False) -> str:
        """Say it with the names of the models, briefly or with what follows from it."""
        about = f"{visible(shown(self.models))}: {self.text}" if self.models else self.text
        return about if is_brief or not self.more else f"{about} {self.more}"

    @property
    def alone(self) -> str:
        """The text where the model is known already, as a sentence; others are one, or begin with a file's name."""
        return f"{self.text[:1].upper()}{self.text[1:]}" if self.models else self.text


class Fact(str):
    """A note in words that warns of nothing: pages say it without 'Take care.'."""

    __slots__ = ()


FACTS = frozenset({"own-mean", "own-score"})
"""Kinds of such notes."""


def joined_notes(parts: Iterable[Note]) -> tuple[Note, ...]:
    """Put notes on different models together; where they say the same they become one."""
    found: dict[tuple[str, str, str], Note] = {}
    for one in parts:
        key = (one.kind, one.text, one.more)
        found[key] = replace(one, models=(*found[key].models, *one.models)) if key in found else one
    return tuple(found.values())


def few_of_each(notes: Sequence[Note], *, is_brief: bool = True) -> list[str]:
    """Say notes in words, of one kind no more than three, and how many more there are."""
    most = 3
    of_kind: dict[str, list[Note]] = {}
    for one in notes:
        of_kind.setdefault(one.kind, []).append(one)
    said: list[str] = []
    for alike in of_kind.values():
        words = [one.in_words(is_brief=is_brief) for one in alike[:most]]
        if len(alike) > most:
            words[-1] += f" (And {len(alike) - most} more like it: rows in JSON and CSV have all.)"
        said += map(Fact, words) if alike[0].kind in FACTS else words
    return said


def notes_on(notes: Sequence[Note], model_id: str) -> str:
    """Say all that is told of a model."""
    return " ".join(one.alone for one in notes if not one.models or model_id in one.models)


def records(table: "pl.DataFrame") -> tuple[SimpleNamespace, ...]:
    """Return the rows of a table as objects whose attributes are its columns."""
    return tuple(SimpleNamespace(**row) for row in table.iter_rows(named=True))


def picked(source: object, *names: str) -> dict[str, Any]:
    """Return attributes as a record, by their names."""
    return {name: getattr(source, name) for name in names}


class Pictured:
    """What has a page, or could have one."""

    __slots__ = ()

    def plot(self) -> Any:
        """Return the first figure of the page: a notebook shows it, ``save("file.png")`` writes it.

        Raises
        ------
        ParameterError
            Without one; the message says what there is instead.
        """
        return above.chart_of(self)

    if not TYPE_CHECKING:  # which would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Say what is to be written for an attribute that is not here."""
            kind = type(self).__name__
            instead = INSTEAD.get(name, "")
            if name in VERBS and (kind in TAKEN or not instead):
                instead = f"ib.{name}({TAKEN.get(kind, 'result')}, ...): verbs are functions"
            advice = f". Write {instead}" if instead else ""
            raise AttributeError(f"{kind!r} object has no attribute {name!r}{advice}", name=name, obj=self)


class Compact(Pictured):
    """A dataclass that a console shows by a `sentence`, or else by its fields, with the shapes of arrays."""

    __slots__ = ()

    def __repr__(self) -> str:
        sentence = getattr(self, SENTENCE, "")
        if sentence:
            return "\n".join(_wrapped(sentence))
        names = [one.name for one in fields(self) if one.repr]  # type: ignore[arg-type]
        lines = [f"  {name}: {_said(getattr(self, name))}" for name in names]
        return "\n".join(_few([type(self).__name__, *lines]))

    def _repr_html_(self) -> str:
        """Show in a notebook how the page begins, for what has one, or the same."""
        return _pieces(self) or f"<pre>{html.escape(repr(self))}</pre>"


class Tabular(Pictured):
    """A result: a header of facts, and a table whose columns are keys of `itembank.output_keys`.

    A class names its `header` and has a `table`, or gives `rows` that are not all alike. Records, JSON, CSV, data
    frames, consoles and notebooks follow; these show scores in points, and then what the result tells.
    """

    __slots__ = ()
    schema: ClassVar[str] = ""
    """Of `itembank.output_keys`, where names of columns mean something else than usual."""
    main_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that a console shows; all where there are none."""
    header: ClassVar[tuple[str, ...]] = ()
    """Attributes that JSON has beside the rows; `key=attribute` for one that has another name there."""
    if TYPE_CHECKING:

        @property
        def table(self) -> Any:
            """A polars table of one row a record."""

    def rows(self) -> list[dict[str, Any]]:
        """One record a row of the table."""
        found: list[dict[str, Any]] = self.table.to_dicts()
        return found

    def main_rows(self) -> list[dict[str, Any]]:
        """Return the records that a console shows."""
        return self.rows()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts, all but the rows, as JSON has them."""
        names = [(key, attribute or key) for key, _, attribute in (one.partition("=") for one in self.header)]
        return {key: plain(getattr(self, attribute)) for key, attribute in names}

    def to_polars(self) -> "pl.DataFrame":
        """Return the records as a polars table."""
        import polars as pl  # noqa: PLC0415 (heavy)

        table: pl.DataFrame | None = getattr(self, "table", None)
        return pl.DataFrame(self.rows(), infer_schema_length=None) if table is None else table

    def to_pandas(self) -> "pd.DataFrame":
        """Return the records as a pandas table.

        Raises
        ------
        MissingDependencyError
            Without pandas.
        """
        return pandas_table(self.rows())

    def __repr__(self) -> str:
        """Say what it is, if it has a `sentence`, and show the first records as a table."""
        rows = self.main_rows()
        names = [one for one in column_names(rows) if not self.main_columns or one in self.main_columns]
        said = [line for one in self._told() for line in title_lines(one, WIDTH)]
        first, is_single = _wrapped(getattr(self, SENTENCE, "")), len(rows) == 1
        title, word = f"{type(self).__name__} of {len(rows)} {'row' if is_single else 'rows'}", ""
        title += self._in_points(names)
        if first:
            has = has_points(names, self.schema)
            title, word = ("", " points" * has) if is_single or not has else ("Scores in points", "")
        if not rows:
            return "\n".join([*(first or [title]), *said])
        made = columns_of(rows[: MOST_LINES - 4], names, schema=self.schema, word=word)
        lines, left_out = table_lines(made, WIDTH, [one.name for one in made[:0:-1]])
        title += f"; not shown: {', '.join(map(visible, left_out))}" if left_out else ""
        most = max(MOST_LINES - len(said) - len(first), 8)  # a table has some lines, however much is said around it
        return "\n".join([*first, *_few([*filter(None, [title.removeprefix("; ")]), *lines], most), *said])

    def _repr_html_(self) -> str:
        """Show a result in a notebook as its page begins, or its first records as a table; everything is escaped."""
        pieces = _pieces(self)
        if pieces:
            return pieces
        rows = self.rows()
        names = column_names(rows)
        most = 100
        made = columns_of(rows[:most], names, schema=self.schema)
        head = _html_row("th", [one.name for one in made])
        body = "".join(_html_row("td", cells) for cells in zip(*(one.cells for one in made), strict=True))
        shown = f"{min(len(rows), most)} of {len(rows)} rows"
        caption = f"{type(self).__name__}: {shown}{self._in_points(names)}"
        said = "".join(f"<p>{html.escape(one)}</p>" for one in self._told())
        return f"<table><caption>{html.escape(caption)}</caption>{head}{body}</table>{said}"

    def _told(self) -> list[str]:
        """Return what a reader must know, as far as the result's verb says so."""
        said = [(kind, one) for kind in TELLING for one in getattr(self, kind, ())]
        notes = [
            one if isinstance(one, Note) else Note(kind, f"{one.removesuffix('.')}.")  # which need not be a sentence
            for kind, one in said
        ]
        return few_of_each(notes)

    def _in_points(self, names: Sequence[str]) -> str:
        return "; scores in points" if has_points(names, self.schema) else ""


def pandas_table(rows: "Sequence[Mapping[str, Any]] | Mapping[str, Any]") -> "pd.DataFrame":
    """Make a pandas table of records, or of columns."""
    try:
        import pandas as pd  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise missing_package("a pandas table needs pandas", "pandas", error) from error
    return pd.DataFrame(rows)


def of_pandas(table: Any) -> "pl.DataFrame":
    """Take a pandas table column by column, which needs no pyarrow: numbers and times as arrays, all else as values."""
    import polars as pl  # noqa: PLC0415 (heavy)

    columns = []
    for place, name in enumerate(table.columns):
        column = table.iloc[:, place]
        values = column.to_numpy()
        if values.dtype.kind in "biufmM":
            columns.append(pl.Series(str(name), values, nan_to_null=values.dtype.kind == "f"))
        else:
            pairs = zip(values.tolist(), column.isna().tolist(), strict=True)
            columns.append(pl.Series(str(name), [None if is_missing else value for value, is_missing in pairs]))
    return pl.DataFrame(columns)


def _wrapped(text: str) -> list[str]:
    """Break each line of a text between words, as a console has room."""
    return [line for part in text.split("\n") for line in title_lines(visible(part), WIDTH)]


def _pieces(result: Any) -> str | None:
    """Return the beginning of a result's page, where it has one and the extra 'report' is installed."""
    try:
        return above.pieces_of(result)
    except MissingDependencyError:
        return None


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(visible(cell))}</{tag}>" for cell in cells) + "</tr>"


def _few(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """Cut what is too long for a console."""
    shown = list(lines) if len(lines) <= most else [*lines[: most - 1], "  ..."]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in shown]


def _said(value: Any) -> str:
    """Say what a value is: of arrays and tables the size, of others as much as there is room for."""
    if hasattr(value, "columns"):
        return visible(f"table of {len(value)} rows: {', '.join(map(str, value.columns))}")
    if hasattr(value, "dtype"):
        return f"array {value.shape} of {value.dtype}"
    if isinstance(value, Mapping):
        return visible(f"{{{', '.join(map(str, value))}}}")
    if isinstance(value, list | tuple) and len(value) > 3:
        return visible(f"{len(value)}: {', '.join(map(str, value[:3]))}, ...")
    if isinstance(value, Compact | Tabular):
        return type(value).__name__
    return reprlib.repr(value).replace("\n", " ")
