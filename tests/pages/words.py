"""What a page says, as text, for tests."""

from itembank.pages.blocks import Answers, Caution, Chart, Facts, Table, Text
from itembank.pages.cells import cell


def section(page, title):
    """The section of this title."""
    return next(one for one in page.sections if one.title == title)


def titles(page):
    """Titles of the sections."""
    return [one.title for one in page.sections]


def blocks(page, kind):
    """All blocks of a kind, in reading order."""
    every = [*page.lead, *(block for one in page.sections for block in one.blocks)]
    return [block for block in every if isinstance(block, kind)]


def table(page, caption):
    """The table of this caption, also one that stands behind a chart."""
    behind = [chart.table for chart in blocks(page, Chart) if chart.table is not None]
    return next(one for one in [*blocks(page, Table), *behind] if one.caption == caption)


def rows(table):
    """Cells of a table as they are written, one list a row."""
    columns = [(column, list(table.data.columns[column.name])) for column in table.columns]
    return [[cell(values[k], column) for column, values in columns] for k in range(len(table.data))]


def words(page):
    """All that a page says outside of tables."""
    parts = [one.lead for one in page.sections] + [page.title]
    for block in blocks(page, Text | Caution | Answers | Chart | Facts):
        match block:
            case Answers(answers):
                parts += [f"{one.label}: {one.value} {one.interval} {one.words}" for one in answers]
            case Chart():
                parts += [block.title, block.alternative, block.note]
            case Facts(pairs, title):
                parts += [title, *(f"{name}: {value}" for name, value in pairs)]
            case _:
                parts.append(block.text)
    return "\n".join(parts)
