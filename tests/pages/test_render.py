import base64
import datetime
import gzip
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from itembank.errors import MissingDependencyError, ParameterError
from itembank.output_keys import source
from itembank.pages.blocks import Answer, Caution, Chart, Column, Data, Facts, Kind, Section, Table, Text, heads
from itembank.pages.pictures import chart_script
from itembank.pages.render import Page, cell, page_html
from itembank.pages.theme import COLOURS

HOSTILE = "</script><script>alert(1)</script>\u202e"
BAR = {"mark": "bar", "encoding": {"x": {"field": "id", "type": "nominal"}, "y": {"field": "value"}}}


@pytest.fixture(scope="module")
def page():
    data = Data("things", {"id": [HOSTILE, "b", "c"], "value": np.array([0.25, np.nan, -1 / 3])})
    table = Table(
        HOSTILE, data, (Column("id", HOSTILE, "id"), Column("value", "Value", "percent", explanation=HOSTILE))
    )
    chart = Chart(HOSTILE, BAR, (data,), f"Three bars {HOSTILE}", table=table)
    words = (Text(HOSTILE), Caution(HOSTILE), Facts(((HOSTILE, HOSTILE),), title=HOSTILE))
    lead = (Answer(HOSTILE, "1", HOSTILE, HOSTILE, citation=HOSTILE),)
    return Page(HOSTILE, HOSTILE, lead, (Section(HOSTILE, (chart, *words), HOSTILE),), ((HOSTILE, HOSTILE),), HOSTILE)


@pytest.fixture(scope="module")
def html(page):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SOURCE_DATE_EPOCH", "86400")
        return page.html()


def scripts(html):
    return re.findall(r"<script([^>]*)>(.*?)</script>", html, flags=re.DOTALL)


def island(html, name):
    text = next(body for head, body in scripts(html) if f'id="{name}"' in head)
    return gzip.decompress(base64.b64decode(text)).decode()


def test_strangers_text_makes_no_markup(html):
    assert "alert(1)" in html
    assert "<script>alert(1)" not in html
    assert "\u202e" not in html  # what turns the direction of the text around it
    assert [head.strip() for head, _ in scripts(html)] == [
        'type="text/plain" id="page-data"',
        'type="text/plain" id="page-library"',
        "",
    ]


def test_only_the_two_scripts_of_ours_may_run(html):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html).group(1)
    allowed = dict(part.split(" ", 1) for part in policy.replace("&#39;", "'").split("; "))
    own = next(body for head, body in scripts(html) if not head)
    wanted = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (own, chart_script())]
    assert allowed["script-src"].split() == [f"'sha256-{one}'" for one in wanted]
    assert allowed["default-src"] == "'none'"
    assert island(html, "page-library") == chart_script()
    style = re.search(r"<style>(.*?)</style>", html, flags=re.DOTALL).group(1)
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in allowed["style-src"]
    assert " style=" not in html.split("<body>")[1].split('<script type="text/plain"')[0]  # the policy refuses these


def test_data_stand_in_the_page_once_and_unknown_is_null(html):
    content = json.loads(island(html, "page-data"))
    assert content["data"]["things"]["value"] == [0.25, None, -0.33333]
    assert content["charts"][0]["data"] == ["things"]
    assert content["tables"][0]["data"] == "things"
    assert len(content["data"]) == 1


def test_names_in_a_chart_s_specification_are_written_as_in_its_data():
    name = "two\u2028lines\u2029"  # which would end a line of the expressions that Vega-Lite makes of names
    colour = {"field": "id", "type": "nominal", "scale": {"domain": [name]}}
    chart = Chart("Title", {"mark": "bar", "encoding": {"color": colour}}, (Data("one", {"id": [name]}),), "One bar.")
    html = Page("Title", "Kind", (chart,)).html()
    content = json.loads(island(html, "page-data"))
    assert content["charts"][0]["spec"]["encoding"]["color"]["scale"]["domain"] == content["data"]["one"]["id"]
    assert content["data"]["one"]["id"] == ["two\\u2028lines\\u2029"]
    assert "<img src" in Page("Title", "Kind", (chart,))._repr_html_()


def test_the_same_page_is_the_same_file(page, html, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert page_html(page) == html


def test_a_page_says_when_it_was_made(page, html, monkeypatch):
    assert '<time datetime="1970-01-02">1970-01-02</time>' in html
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    days = [datetime.datetime.now(datetime.UTC).date()]
    made = re.search(r"<time[^>]*>([^<]*)<", page.html()).group(1)
    assert datetime.date.fromisoformat(made) in [*days, datetime.datetime.now(datetime.UTC).date()]
    for wrong in ("yesterday", "-1", "1.5", "²"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        with pytest.raises(ParameterError, match="SOURCE_DATE_EPOCH must be whole seconds"):
            page.html()


def test_what_others_show_of_a_page_is_its_title_and_first_sentence(html):
    meta = dict(re.findall(r'<meta (?:name|property)="([^"]*)" content="([^"]*)">', html))
    assert meta["og:title"] in meta["description"]
    assert meta["og:description"] == meta["description"]
    assert "&lt;/script&gt;" in meta["og:title"]
    page = Page("Title", "Kind", (Answer("a", "1"), Text(""), Text('Five "of" six.'), Text("More.")))
    assert page.summary == 'Five "of" six.'
    assert 'name="description" content="Five &#34;of&#34; six."' in page.html()


def test_cells_have_the_head_of_their_column_and_names_break_after_their_parts():
    columns = (Column("a", 'A_"x"', "id"), Column("n", "N", "points"))
    table = Table.of("T", "d", {"a": ["one_two/<b>-3", "4"], "n": [-0.5, -0.0001]}, columns)
    html = Page("Title", "Kind", (table,)).html()
    assert '<td data-label="A_&#34;x&#34;" class="id">one_<wbr>two/&lt;b&gt;-<wbr>3</td>' in html
    assert '<td data-label="N" class="points number">−50.0</td>' in html
    assert '<td data-label="N" class="points number">0.0</td>' in html  # as the script writes it


def test_long_names_break_and_numbers_stay_behind_names_read_from_right_to_left():
    columns = (Column("a", "A", "id"), Column("x" * 18, "x" * 18, "number"))
    table = Table.of("T", "d", {"a": ["y" * 17, "جيس-13"], "x" * 18: [1.0, 2.0]}, columns)
    commands = Facts((("Run", "itembank run 'جيس 5 %.csv'"),), are_commands=True)
    html = Page("Title", "Kind", (Text("Best: جيس-13, 88.8 points."), table, commands)).html()
    assert "Best: جيس\u200e-13, 88.8 points." in html
    assert f"{'x' * 16}<wbr>x<wbr>x</th>" in html
    assert f"{'y' * 16}<wbr>y</td>" in html
    assert ">جيس-<wbr>13</td>" in html  # what is copied has no mark
    assert "<code>itembank run &#39;جيس 5 %.csv&#39;</code>" in html


def test_a_page_without_charts_brings_no_library():
    html = Page("Title", "Kind", (Text("Words."),)).html()
    assert 'id="page-library"' not in html
    assert len(html) < 30_000


def test_a_notebook_gets_words_and_still_pictures_without_scripts(page):
    shown = page._repr_html_()
    assert "<script" not in shown
    assert "alert(1)" in shown
    picture = re.search(r'<img src="data:image/svg[+]xml;base64,([^"]*)" alt="Three bars', shown).group(1)
    svg = base64.b64decode(picture).decode()
    assert COLOURS["main"].light.lower() in svg.lower()
    assert "<script" not in svg


def test_two_data_of_one_name_are_refused():
    tables = [Table("T", Data("same", {"a": [k]}), (Column("a", "A"),)) for k in range(2)]
    with pytest.raises(ParameterError, match="'same' came twice"):
        Page("Title", "Kind", tuple(tables)).html()


def test_a_table_of_other_columns_is_refused():
    with pytest.raises(ParameterError, match=r"not there: \['b'\]"):
        Table("T", Data("d", {"a": [1]}), (Column("b", "B"),))
    with pytest.raises(ParameterError, match="equally long"):
        Data("d", {"a": [1], "b": [1, 2]})


@pytest.mark.parametrize("name", ["report.txt", "report", "report.html.gz"])
def test_other_endings_are_refused(page, tmp_path, name):
    with pytest.raises(ParameterError, match=r"must end in \.html"):
        page.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_what_is_not_installed_is_named_with_what_to_install(page, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    chart_script.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"need vl-convert-python, .*pip install vl-convert-python$"):
        page.html()


def test_a_line_breaks_neither_arrows_nor_names_of_options():
    html = Page("", "", (Text("70.5 -> 66.5 <b> --max-lost counts -4.0"),), ()).html()
    whole = '70.5 <span class="whole">-&gt;</span> 66.5 &lt;b&gt; <span class="whole">--max-lost</span> counts -4.0'
    assert f"<p>{whole}</p>" in html


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("percent", 0.739, "73.9 %"),
        ("points", 0.014, "+1.4"),
        ("points", -0.014, "−1.4"),
        ("number", -0.25, "−0.2"),
        ("count", 14042.0, "14,042"),
        ("flag", True, "yes"),
        ("text", "a\x07b", "a\\x07b"),
        ("number", float("nan"), "–"),
        ("id", None, "–"),
    ],
)
def test_cells(kind, value, text):
    assert cell(value, Column("a", "A", kind)) == text


def test_every_head_of_a_column_is_of_a_known_kind_and_stands_on_a_page():
    text = "".join(
        path.read_text(encoding="utf-8")
        for place in ("itembank/pages", "itembank_scaling/pages", "itembank_studies/charts")
        for path in (Path(__file__).parents[2] / "src" / place).glob("*.py")
    )
    for column in heads(*source()["heads"]):
        assert column.kind in get_args(Kind)
        assert re.search(rf'heads\([^)]*"{column.name}"', text), column.name
