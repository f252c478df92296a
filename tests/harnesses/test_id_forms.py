"""Chosen ids in the forms of tools, read back as each tool reads them; ids are strangers' text."""

import json
import re
import shlex
from fnmatch import fnmatchcase

import polars as pl
import pytest

from itembank.cli.options import ID_FORMS
from itembank.errors import DataError
from itembank.harnesses.id_forms import FORMS, id_text

ODD = ["a.b+c", "x[1]*?", "$(touch pwned); 'q' \"r\"", "é|ü", "back\\slash", "plain"]
READ = {
    "list": str.splitlines,
    "swe-bench": shlex.split,
    "mini-swe-agent": lambda text: [one for one in [*ODD, "plainer", "aXb+c", "x"] if re.match(text.strip(), one)],
    "harbor": lambda text: [
        one for one in [*ODD, "x1aa"] if any(fnmatchcase(one, name) for name in json.loads(text)["task_names"])
    ],
    "bfcl": lambda text: [one for ids in json.loads(text).values() for one in ids],
}


def table(ids, **columns):
    return pl.DataFrame({"item_id": ids, "scenario": "s", "subscenario": None, **columns})


@pytest.mark.parametrize("form", READ)
def test_a_tool_reads_the_very_ids(form):
    text = id_text(form, ODD, table([*ODD, "plainer"]))
    assert READ[form](text) == ODD
    assert text.endswith("\n")


def test_ids_are_those_of_where_items_come_from():
    items = table(["swe/a-1", "swe/b-2", "c"], task=["swe", "swe", None], native_id=[None, "B-2", None])
    items = items.with_columns(subscenario=pl.Series(["simple", "parallel", None], dtype=pl.String))
    assert id_text("swe-bench", ["swe/b-2", "swe/a-1", "c"], items) == "B-2 a-1 c\n"
    assert json.loads(id_text("bfcl", items["item_id"], items)) == {"simple": ["a-1"], "parallel": ["B-2"], "s": ["c"]}
    ids = ["t/10", "t/2", "u/v/0"]
    assert json.loads(id_text("lm-eval", ids, table(ids))) == {"t": [2, 10], "u/v": [0]}
    assert tuple(FORMS) == ID_FORMS


@pytest.mark.parametrize(
    ("form", "ids", "message"),
    [
        ("list", ["a\nb"], "no line break in the form list"),
        ("swe-bench", ["--report_dir"], "no dash at its beginning"),
        ("mini-swe-agent", ["a\nb"], "no line break"),
        ("lm-eval", ["django__django-1"], "must be 'task/doc_id'"),
    ],
)
def test_what_a_form_cannot_carry_is_refused(form, ids, message):
    with pytest.raises(DataError, match=message):
        id_text(form, ids, table(ids))
    with pytest.raises(DataError, match="must be in the bank"):
        id_text(form, ["other"], table(ids))
