"""What a page holds, for tests that look at blocks and not at HTML."""

import json

from itembank.pages.blocks import Answer, Answers, Caution, Chart, Facts, Table, Text
from itembank.pages.pictures import plain_columns
from itembank.pages.render import cell

EXPRESSIONS = {"test", "filter", "expr", "calculate"}


def holds(text, *parts):
    """Check that a text has all of these words."""
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in {text}"


def blocks(page):
    return [*page.lead, *(block for section in page.sections for block in section.blocks)]


def of_kind(page, kind):
    return [one for one in blocks(page) if isinstance(one, kind)]


def answers(page):
    found = []
    for one in blocks(page):
        found.extend(one.answers if isinstance(one, Answers) else [one] if isinstance(one, Answer) else [])
    return found


def table(page, caption):
    """The only table whose caption has these words."""
    tables = [*of_kind(page, Table), *(chart.table for chart in of_kind(page, Chart) if chart.table is not None)]
    (found,) = [one for one in tables if caption in one.caption]
    return found


def column(page, caption, name):
    return list(table(page, caption).data.columns[name])


def rows(table):
    columns = [(column, list(table.data.columns[column.name])) for column in table.columns]
    return [[cell(values[k], column) for column, values in columns] for k in range(len(table.data))]


def section(page, title):
    return next(one for one in page.sections if one.title == title)


def titles(page):
    return [one.title for one in page.sections]


def chart(page, words):
    """The only chart whose title has these words."""
    (found,) = [one for one in of_kind(page, Chart) if words in one.title]
    return found


def words(page):
    found = [section.lead for section in page.sections]
    found += [f"{one.label} {one.value} {one.interval} {one.words}" for one in answers(page)]
    for one in blocks(page):
        if isinstance(one, Text | Caution):
            found.append(one.text)
        if isinstance(one, Facts):
            found.extend(f"{name} {value}" for name, value in one.pairs)
        if isinstance(one, Chart):
            found += [one.title, one.alternative, one.note]
    return "\n".join(found)


def lead_text(page):
    return " ".join(one.text for one in page.lead if isinstance(one, Text))


def cautions(page):
    return " ".join(one.text for one in page.lead if isinstance(one, Caution))


def parts(spec):
    """Every name of a specification with its value, at any depth."""
    if isinstance(spec, dict):
        for name, value in spec.items():
            yield name, value
            yield from parts(value)
    elif isinstance(spec, list | tuple):
        for one in spec:
            yield from parts(one)


def columns_of(chart, name=""):
    return next(one for one in chart.data if name in {"", one.name}).columns


def check_chart(one, *payloads, path=None):
    """A chart names columns of its data; everything can be written; no expression holds a stranger's name."""
    if path is not None:
        one.save(path)
    rows = [row for name, value in parts(one.spec) if name == "values" for row in value if isinstance(row, dict)]
    own = {name for row in rows for name in row}
    known = own.union(*(data.columns for data in one.data))
    named = {value for name, value in parts(one.spec) if name == "field" and isinstance(value, str)}
    assert named <= known, (one.title, named - known)
    assert len(one.alternative) > 20
    expressions = [str(value) for name, value in parts(one.spec) if name in EXPRESSIONS]
    assert not any(payload in each for each in expressions for payload in payloads)
    json.dumps(one.spec)
    for data in one.data:
        json.dumps(plain_columns(data.columns), allow_nan=False)


def check_charts(page, *payloads):
    for one in of_kind(page, Chart):
        check_chart(one, *payloads)
    for one in of_kind(page, Table):
        json.dumps(plain_columns(one.data.columns), allow_nan=False)
