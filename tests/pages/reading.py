"""What a test reads off a page: its charts, tables and words, and whether charts name columns that there are."""

import json
from collections.abc import Iterator
from typing import Any

from itembank.pages.blocks import Answer, Answers, Caution, Chart, Page, Table, Text
from itembank.pages.plain import plain_columns

EXPRESSIONS = {"test", "filter", "expr", "calculate"}


def blocks(page: Page) -> Iterator[Any]:
    yield from page.lead
    for section in page.sections:
        yield from section.blocks


def charts(page: Page) -> list[Chart]:
    return [one for one in blocks(page) if isinstance(one, Chart)]


def tables(page: Page) -> dict[str, Table]:
    found = [one for one in blocks(page) if isinstance(one, Table)]
    found += [one.table for one in charts(page) if one.table is not None]
    return {one.caption: one for one in found}


def answers(page: Page) -> list[Answer]:
    made = [
        one.answers if isinstance(one, Answers) else (one,) for one in page.lead if isinstance(one, Answers | Answer)
    ]
    return [one for several in made for one in several]


def words(page: Page) -> str:
    return " ".join(one.text for one in page.lead if isinstance(one, Text))


def cautions(page: Page) -> str:
    return " ".join(one.text for one in page.lead if isinstance(one, Caution))


def parts(spec: Any) -> Iterator[tuple[str, Any]]:
    """Every name with its value, at any depth."""
    if isinstance(spec, dict):
        for name, value in spec.items():
            yield name, value
            yield from parts(value)
    elif isinstance(spec, list | tuple):
        for one in spec:
            yield from parts(one)


def check_charts(page: Page, *payloads: str) -> None:
    """Charts name columns of their data; everything can be written; no expression holds a stranger's name."""
    for chart in charts(page):
        known = {name for data in chart.data for name in data.columns}
        named = {value for name, value in parts(chart.spec) if name == "field" and isinstance(value, str)}
        assert named <= known, (chart.title, named - known)
        assert len(chart.alternative) > 20
        expressions = [str(value) for name, value in parts(chart.spec) if name in EXPRESSIONS]
        assert not any(payload in one for one in expressions for payload in payloads)
        json.dumps(chart.spec)
        for data in chart.data:
            json.dumps(plain_columns(data), allow_nan=False)
    for table in tables(page).values():
        json.dumps(plain_columns(table.data), allow_nan=False)
