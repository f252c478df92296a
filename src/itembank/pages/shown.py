"""Which page belongs to which result: for `itembank.show`, for files, and for what a notebook shows of a result."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from itembank.auditing.item_audit import ItemAudit
from itembank.bank.arguments import GivenBank
from itembank.bank.bank_files import load_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.comparisons import Comparison
from itembank.errors import ParameterError, visible
from itembank.estimation.estimates import ScoreEstimates
from itembank.gating.results import Gate
from itembank.methods import entry_points_of
from itembank.pages.audit_page import audit_page
from itembank.pages.bank_page import bank_page, bank_summary, precision_chart
from itembank.pages.blocks import Answer, Answers, Chart, Column, Data, Section, Table, Text, heads, noted
from itembank.pages.comparison_page import comparison_page
from itembank.pages.estimates_page import MOST_NAMED
from itembank.pages.gate_page import gate_page
from itembank.pages.grammar import ESTIMATE, ROW, intervals, nominal, picture, score, tips
from itembank.pages.past_models import score_words
from itembank.pages.render import Page, pieces_html
from itembank.pages.session_page import session_page
from itembank.pages.theme import ATYPICAL_WORDS, interval_words, level_words, percent, points
from itembank.planning.plan import Plan
from itembank.progress import ProgressCallback, silent
from itembank.responses.score_names import without_only_scenario
from itembank.sessions.journal import is_journal
from itembank.sessions.journal_sessions import bank_of_session, read_session
from itembank.tables import plural
from itembank.tabular import few_of_each


class Shown(NamedTuple):
    """The page of a result, and what a notebook shows of it: by default its table, as of results without a page."""

    page: Callable[[Any], Page]
    beginning: Callable[[Any], Page] | None = None


def show(result: object, *, title: str = "") -> Page:
    """Return the page that belongs to a result, which shows itself in a notebook.

    Parameters
    ----------
    result : Bank, Selection, ScoreEstimates, Comparison, ItemAudit, ..., or path
        What a verb of this library, or of a package that adds pages, returned. Or where a bank, the journal of a
        session or a study is; also the name of a bank.
    title : str
        Of the page; what the result is about where it is empty.

    Returns
    -------
    Page
        ``show(bank).save("bank.html")`` writes it, ``.save("bank.png")`` (or .svg, .pdf) its first chart; `charts` has
        all of them.

    Raises
    ------
    ParameterError
        For something that has no page; the message names what has one.

    Examples
    --------
    >>> show(calibrate(responses)).save("bank.html")  # doctest: +SKIP
    """
    if isinstance(result, str | Path):
        page = page_at(result)
    elif found := _page_of(result):
        page = found.page(result)
    else:
        names = ", ".join(sorted(one.__name__ for one in (*PAGES, *_pages_of_others())))
        raise ParameterError(f"only results that have a page can be shown ({names}), got {type(result).__name__}.")
    return replace(page, title=title) if title else page


def report(result: object, path: str | Path, *, title: str = "") -> Path:
    """Write the page of a result as one HTML file that opens anywhere, and return where.

    Parameters
    ----------
    result, title
        As `show` takes them.
    path : str or Path
        Ends in .html; in .png, .svg or .pdf for the first chart alone.

    Raises
    ------
    ParameterError
        For something that has no page, or another ending.
    MissingDependencyError
        Without what the extra 'report' installs.

    Examples
    --------
    >>> report("bank", "bank.html")  # doctest: +SKIP
    """
    return show(result, title=title).save(path)


def page_at(source: str | Path, *, bank: GivenBank | None = None, progress: ProgressCallback = silent) -> Page:
    """Return the page of the bank, of the session whose journal it is, or of what installed packages know, at a path.

    `bank` is that of a session, where it is not where the journal says.
    """
    path = Path(source)
    if path.is_file() and is_journal(path):
        own = bank_of_session(path, bank)
        return session_page(read_session(path, own, progress=progress), own)
    others = entry_points_of("itembank.reports").values() if path.is_dir() else ()
    made: Page | None = next((page for entry in others if (page := entry.load()(path)) is not None), None)
    return made or bank_page(load_bank(source))


def _page_of(result: object) -> Shown | None:
    """Find how a result is shown: here, or by a package that brings results of its own."""
    return PAGES.get(type(result)) or _pages_of_others().get(type(result))


@cache
def _pages_of_others() -> Mapping[type, Shown]:
    """Return the page of each type of result that installed packages bring."""
    return {kind: page for entry in entry_points_of("itembank.pages").values() for kind, page in entry.load().items()}


def chart_of(result: object) -> Chart:
    """Return the first chart of a result's page, or say what there is instead."""
    found = _page_of(result)
    charts = () if found is None else found.page(result).charts
    if not charts:
        frame = " to_polars() has its numbers." * hasattr(result, "to_polars")
        page = "" if found is None else " show(...) gives its page."
        raise ParameterError(f"{type(result).__name__} has no figure to plot.{page}{frame}")
    return charts[0]


def pieces_of(result: object) -> str | None:
    """Return what a notebook shows of a result as HTML, or None for a result that has a table only."""
    found = _page_of(result)
    return None if found is None or found.beginning is None else pieces_html(found.beginning(result))


def beginning_of(page: Page) -> Page:
    """Return the answer and the first table of a page."""
    tables = (Section(part.title, (one,)) for part in page.sections for one in part.blocks if isinstance(one, Table))
    return replace(page, sections=tuple(islice(tables, 1)))


def _estimates(estimates: ScoreEstimates) -> Page:
    rows = without_only_scenario(estimates.rows())
    most_answers = 4  # models whose overall score stands above the table
    first = [row for row in rows if row["target"] == estimates.main_target][:most_answers]
    columns = (
        *heads("model_id", "target", "estimate", "low"),
        Column("high", "To", "score"),
        Column("n_items", "Questions run", "count"),
        Column("n_total", "Of", "count"),
        Column("typicality", "Typicality", "number", 2),
    )
    table = Table.of(
        f"Estimates with {level_words(estimates.level)} intervals", "estimates", rows, columns, n_shown=100
    )
    return Page(
        _title(estimates),
        "Estimates",
        (Answers(tuple(_answer(row) for row in first)), *map(noted, few_of_each(estimates.notes, is_brief=False))),
        (Section("All scores", (_scores_chart(estimates), table)),),
    )


def _scores_chart(estimates: ScoreEstimates) -> Chart:
    """Draw the scores of one model, or the main scores of several, the highest first."""
    rows, at = estimates.main_rows(), "target" if estimates.n_models == 1 else "model_id"
    rows = sorted(without_only_scenario(rows), key=lambda row: (row["estimate"] != row["estimate"], -row["estimate"]))
    is_flagged = dict(zip(estimates.model_ids, estimates.typicality.is_flagged.tolist(), strict=True))
    columns: dict[str, Any] = {"name": [row[at] for row in rows[:MOST_NAMED]]}
    columns |= {key: [row[key] for row in rows[:MOST_NAMED]] for key in ("estimate", "low", "high")}
    data = Data("scores", columns | {"is_flagged": [is_flagged[row["model_id"]] for row in rows[:MOST_NAMED]]})
    words = score_words(estimates.main_target) if at == "model_id" else "Score"
    tip = tips(name=words, **ESTIMATE)
    marked = intervals(nominal("name", grid=False), score("estimate", words), tip, data=data.name)
    cut = f" The {MOST_NAMED} highest of {len(rows):,}." if len(rows) > MOST_NAMED else ""
    hollow = f" Hollow: {ATYPICAL_WORDS}." if any(data.columns["is_flagged"]) else ""
    note = f"Bars: {level_words(estimates.level)} intervals.{hollow}{cut}"
    spec = picture(marked, height=ROW * len(data))
    return Chart(_title(estimates), spec, (data,), visible(estimates.sentence), note=note)


def _title(estimates: ScoreEstimates) -> str:
    ids = estimates.model_ids
    return f"Estimated scores of {ids[0] if len(ids) == 1 else f'{len(ids)} models'}"


def _answer(row: dict[str, Any]) -> Answer:
    is_known = row["estimate"] == row["estimate"]
    interval = (
        f"{interval_words(row['low'], row['high'])} points, {level_words(row['level'])} interval" if is_known else ""
    )
    words = f"from {row['n_items']:,} of {plural(row['n_total'], 'question')}, by {row['method']}"
    return Answer(row["model_id"], points(row["estimate"]), interval, words)


def _plan(plan: Plan) -> Page:
    level, found = level_words(plan.level), f"True difference that shows {percent(plan.power, 0)} of the time"
    columns = (
        Column("n_items", "Questions", "count"),
        Column(
            "half_width", "Interval ±", "points", 1, f"Half-width of a {level} interval, for a model like past ones"
        ),
        Column("detectable_difference", "Difference found", "points", 1, found),
        *(Column(unit, unit, "number", 2) for unit in plan.table[0].costs),
    )
    table = Table.of("How precise scores are", "plan", plan.rows(), columns, n_shown=100)
    how = f"By a formula, for questions that are drawn at random from bank {plan.bank_id}."
    said = tuple(Text(str(one)) for one in plan.notes)
    return Page("How many questions", "Plan", (*said, Text(how)), (Section("", (precision_chart(plan), table)),))


def _selection(selection: Selection) -> Page:
    rows = {"item": selection.item_ids, "scenario": selection.scenarios, "weight": selection.weights}
    columns = (
        *heads("item"),
        Column("scenario", "Scenario"),
        Column("weight", "Weight", "number", 4, "In the estimate of its scenario's score"),
    )
    table = Table.of("Chosen questions", "chosen", rows, columns, n_shown=10)
    words = f"Chosen by {selection.method} from bank {selection.bank}."
    lead = (Text(words), Text(selection.explanation))
    return Page(f"Selection of {plural(selection.n_items, 'question')}", "Selection", lead, (Section("", (table,)),))


def of_charts(kind: str, draw: Callable[[Any], Chart | tuple[Chart, ...]]) -> Shown:
    """Make a page of charts alone, each with a section that its title heads."""

    def made(result: Any) -> Page:
        found = draw(result)
        charts = (found,) if isinstance(found, Chart) else found
        return Page(charts[0].title, kind, (), tuple(Section("", (one,)) for one in charts))

    return Shown(made)


def begun(page: Callable[[Any], Page]) -> Shown:
    """Take the answer and the first table of a page for notebooks."""
    return Shown(page, lambda result: beginning_of(page(result)))


PAGES: dict[type, Shown] = {
    Bank: Shown(bank_page, bank_summary),
    Selection: Shown(_selection, _selection),
    Plan: begun(_plan),
    ScoreEstimates: begun(_estimates),
    Comparison: Shown(comparison_page),
    Gate: begun(gate_page),
    ItemAudit: begun(audit_page),
}
"""The page of each type of result: a new page is a file and a line here, and a name in the door if it has options."""
