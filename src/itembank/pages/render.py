"""Pages as HTML: everything from data is escaped, and no script runs but the two that are named by their digest."""

import base64
import datetime
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from itembank.errors import ParameterError, missing_package, shown, visible
from itembank.files.atomic import check_destination, write_text
from itembank.pages.blocks import Block, Chart, Column, Data, Section, Table, Text
from itembank.pages.pictures import FORMATS, PACKAGES, chart_script, packed, plain_columns, plain_spec
from itembank.pages.theme import COLOURS, chart_config, style_variables
from itembank.tabular import picked

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NO_BREAK = "\u00a0"
RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc](?:\\W*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc])*"
)
ABSENT = "–"
WRITTEN: dict[str, Callable[[Any, int], str]] = {
    "number": lambda value, digits: _minus(f"{value:.{digits}f}"),
    "score": lambda value, digits: _minus(f"{100.0 * value:.{digits}f}"),
    "percent": lambda value, digits: f"{_minus(f'{100.0 * value:.{digits}f}')} %",
    "points": lambda value, digits: _minus(f"{100.0 * value:+.{digits}f}"),
    "count": lambda value, _: f"{value:,.0f}",
    "flag": lambda value, _: "yes" if value else "no",
    "response": lambda value, _: {1.0: "right", 0.0: "wrong"}.get(value, f"{value:.2f}"),
}


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """A report: the answer first, then sections, then where it comes from.

    Attributes
    ----------
    title : str
        What it is about.
    kind : str
        What sort of report it is: "Bank", "Estimates", ...
    lead : tuple of blocks
        Answers and cautions.
    sections : tuple of Section
    provenance : tuple of (name, value)
        Bank, versions, sources, checksums.
    command : str
        The command that wrote the page; '' where Python did.
    """

    title: str
    kind: str
    lead: tuple[Block, ...]
    sections: tuple[Section, ...] = ()
    provenance: tuple[tuple[str, str], ...] = ()
    command: str = ""

    def __repr__(self) -> str:
        return f"Page {self.title!r}; .save('page.html') writes it"

    def html(self) -> str:
        """Return the page as one HTML document.

        Raises
        ------
        MissingDependencyError
            Without what the extra 'report' installs.
        """
        return page_html(self)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The charts of the page in reading order, each of which can be saved as a picture."""
        return tuple(one for one in self.blocks() if isinstance(one, Chart))

    @property
    def summary(self) -> str:
        """The first sentence of the page; its title where it begins with numbers."""
        return next((one.text for one in self.lead if isinstance(one, Text) and one.text), f"{self.kind}: {self.title}")

    def blocks(self) -> Iterator[Block]:
        """Go through the blocks of the page in reading order."""
        yield from self.lead
        for section in self.sections:
            yield from section.blocks

    def save(self, path: str | Path) -> Path:
        """Write the page as HTML, or its first chart as a picture, whole or not at all, and return where.

        Raises
        ------
        ParameterError
            For a name that ends in something else than .html, .htm, .png, .svg or .pdf, and for a picture of a page
            without charts.
        MissingDependencyError
            Without what the extra 'report' installs.
        """
        if Path(path).suffix.lower().lstrip(".") in FORMATS:
            if not self.charts:
                raise ParameterError(
                    f"the page {self.title!r} has no chart to save as {Path(path).name!r}: save .html."
                )
            return self.charts[0].save(path)
        path = check_page_destination(path)
        write_text(path, self.html())
        return path

    def _repr_html_(self) -> str:
        return pieces_html(self)


def check_page_destination(path: str | Path) -> Path:
    """Return the path of a page that can be written there."""
    path = Path(path)
    if path.suffix.lower() not in {".html", ".htm"}:
        raise ParameterError(f"a report's file name must end in .html, got {path.name!r}.")
    check_destination(path)
    return path


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the page's script needs, gathered while blocks are numbered in reading order."""

    data: dict[str, Data]
    charts: Sequence[Chart]
    tables: Sequence[Table]

    @classmethod
    def of(cls, page: Page) -> Self:
        """Take the charts and tables of a page; the table behind a chart comes after it."""
        every = [one for block in page.blocks() for one in (block, block.table if isinstance(block, Chart) else None)]
        found: dict[str, Data] = {}
        for one in every:
            for data in one.data if isinstance(one, Chart) else [one.data] if isinstance(one, Table) else []:
                if found.setdefault(data.name, data) is not data:
                    raise ParameterError(f"every data of a page needs its own name; {data.name!r} came twice.")
        return cls(found, page.charts, [one for one in every if isinstance(one, Table)])

    def number_of(self, block: Table | Chart) -> int:
        """Return the place of a chart among charts, or of a table among tables."""
        among: Sequence[Any] = self.charts if isinstance(block, Chart) else self.tables
        return next(k for k, one in enumerate(among) if one is block)


def page_html(page: Page) -> str:
    """Return a page as one document that needs nothing else."""
    gathered = Gathered.of(page)
    own, library = _asset("page.js"), chart_script() if gathered.charts else ""
    style = style_variables() + _asset("page.css")
    scripts = [own, library] if library else [own]
    allowed = " ".join(_digest(one) for one in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    colours = [{name: pair[k] for name, pair in COLOURS.items()} for k in (0, 1)]
    data = {
        "data": {name: plain_columns(data.columns) for name, data in gathered.data.items()},
        "charts": [_chart(chart, gathered) for chart in gathered.charts],
        "tables": [_table(table) for table in gathered.tables],
        "looks": [{"config": chart_config(bool(k)), "colours": colours[k]} for k in (0, 1)],
    }
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    if seconds and not (seconds.isascii() and seconds.isdigit() and len(seconds) < 12):
        raise ParameterError(f"SOURCE_DATE_EPOCH must be whole seconds since 1970, got {shown(seconds)}.")
    now = datetime.datetime.now(datetime.UTC)
    made = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC) if seconds else now
    return _filled(
        "page",
        page=page,
        gathered=gathered,
        policy=policy,
        style=style,
        script=own,
        library=_packed(library) if library else "",
        data=_packed(json.dumps(data, separators=(",", ":"), allow_nan=False)),
        version=version("itembank"),
        made=made.date().isoformat(),
    )


def pieces_html(page: Page) -> str:
    """Return the words and tables of a page for a notebook, which has a head and scripts of its own."""
    return _filled("pieces", page=page, gathered=Gathered.of(page), style=_asset("pieces.css"))


def _filled(template: str, **content: object) -> str:
    return _environment().get_template(f"{template}.html.j2").render(**content)


@cache
def _environment() -> "Environment":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 (optional)
        from markupsafe import Markup  # noqa: PLC0415 (comes with jinja2)
    except ImportError as error:
        raise missing_package("reports need jinja2", PACKAGES, error) from error
    environment = Environment(
        loader=PackageLoader("itembank.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.tests["number_column"] = is_number
    environment.filters["breakable"] = _breakable
    environment.filters["unbroken"] = _unbroken
    environment.filters["as_typed"] = lambda text: Markup.escape(_as_typed(text))  # what people copy has no marks
    environment.filters["kind"] = lambda block: type(block).__name__.lower()
    environment.globals["first_rows"] = first_rows
    return environment


def _visible(value: Any) -> Any:
    """Show control characters of names, which would hide or turn what follows them; keep '37.8 %' on one line.

    A mark ends each name that is read from right to left: the number after it would move before it.
    """
    return RIGHT_TO_LEFT.sub("\\g<0>\u200e", _on_one_line(_as_typed(value))) if type(value) is str else value


def _as_typed(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


def _on_one_line(text: str) -> str:
    return text.replace(" %", NO_BREAK + "%")


def _breakable(text: str) -> "Markup":
    """Return a name, escaped, that a narrow column may break after its parts, as `assets/page.js` writes it."""
    from markupsafe import Markup  # noqa: PLC0415 (comes with jinja2)

    return Markup("<wbr>").join(
        re.split(r"(?<=[_/-])(?=\w)|(?<=\w{16})(?=\w)", _on_one_line(_as_typed(text)), flags=re.ASCII)
    )


def _unbroken(text: str) -> "Markup":
    """Return a text, escaped, whose arrows and names of options a line does not break."""
    from markupsafe import Markup  # noqa: PLC0415 (comes with jinja2)

    safe = str(Markup.escape(_visible(text)))
    return Markup(re.sub(r"(?<=\s)(-&gt;|--?[a-z][\w-]*)(?!\w)", r'<span class="whole">\1</span>', safe))  # noqa: S704


def first_rows(table: Table) -> list[list[tuple[Column, str]]]:
    """Return the rows that stand in the document itself; the script has the others."""
    n_rows = min(table.n_shown, len(table.data))
    values = [list(table.data.columns[column.name][:n_rows]) for column in table.columns]
    return [[(column, cell(values[j][k], column)) for j, column in enumerate(table.columns)] for k in range(n_rows)]


def cell(value: Any, column: Column) -> str:
    """Return how one value is written."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    write = WRITTEN.get(column.kind)
    return visible(str(value)) if write is None else write(value, column.digits)


def _minus(text: str) -> str:
    """Write a true minus, and never '-0.0': the script writes neither when rows are sorted."""
    return re.sub(r"^-(?=[0.]+$)", "", text).replace("-", "−")


def is_number(column: Column) -> bool:
    """Return whether the column's cells stand at the right."""
    return column.kind in {"number", "score", "percent", "points", "count"}


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _packed(text: str) -> str:
    """Return a text as letters that need no escaping, and say so: looking through megabytes of them takes a second."""
    from markupsafe import Markup  # noqa: PLC0415 (comes with jinja2)

    return Markup(base64.b64encode(packed(text)).decode())  # noqa: S704 (base64 has no markup)


@cache
def _asset(name: str) -> str:
    text = files("itembank.pages").joinpath("assets", name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(one for one in lines if not one.startswith(("//", "/*")))  # a page has no use for comments


def _table(table: Table) -> dict[str, Any]:
    columns = [{**picked(one, "name", "title", "kind", "digits"), "menu": one.has_menu} for one in table.columns]
    shown = {"data": table.data.name, "caption": table.caption, "shown": table.n_shown, "entries": len(table.entries)}
    return {**shown, "columns": columns}


def _chart(chart: Chart, gathered: Gathered) -> dict[str, Any]:
    filtered = None if chart.filters is None else gathered.number_of(chart.filters)
    spec = {"data": {"name": chart.data[0].name}, **chart.spec, "description": chart.alternative}
    return {"spec": plain_spec(spec), "data": [data.name for data in chart.data], "filters": filtered}
