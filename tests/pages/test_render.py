"""Pages as HTML and in a notebook."""

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

import itembank as ib
from itembank.errors import MissingDependencyError, ParameterError
from itembank.output_keys import source
from itembank.pages.audit_page import audit_page
from itembank.pages.bank_page import bank_page
from itembank.pages.blocks import Answer, Caution, Chart, Column, Data, Facts, Kind, Section, Table, Text, heads
from itembank.pages.comparison_page import comparison_page
from itembank.pages.pictures import chart_script
from itembank.pages.render import Page, _environment, cell, page_html
from itembank.pages.theme import COLOURS
from itembank_studies.charts.paper_charts import dimensionality_chart
from itembank_studies.papers.dimensions import dimensionality
from itembank_studies.papers.task_overview import task_overview
from tests.bank.banks import make_bank
from tests.estimation.simulated import shared_bank
from tests.pages.reading import holds

HOSTILE = "</script><script>alert(1)</script>\u202e"
BAR = {"mark": "bar", "encoding": {"x": {"field": "id", "type": "nominal"}, "y": {"field": "value"}}}


@pytest.fixture(scope="module")
def page():
    data = Data("things", {"id": [HOSTILE, "b", "c"], "value": np.array([0.25, np.nan, -1 / 3])})
    columns = (Column("id", HOSTILE, "id"), Column("value", "Value", "percent", explanation=HOSTILE))
    chart = Chart(HOSTILE, BAR, (data,), f"Three bars {HOSTILE}", table=Table(HOSTILE, data, columns))
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


def test_strangers_text_makes_no_markup_our_scripts_alone_may_run_and_data_stand_once(html):
    assert ("alert(1)" in html, "<script>alert(1)" in html) == (True, False)
    assert "\u202e" not in html  # what turns the direction of the text around it
    heads_of = [f'type="text/plain" id="page-{name}"' for name in ("data", "library")]
    assert [head.strip() for head, _ in scripts(html)] == [*heads_of, ""]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html).group(1)
    allowed = dict(part.split(" ", 1) for part in policy.replace("&#39;", "'").split("; "))
    own = next(body for head, body in scripts(html) if not head)
    wanted = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (own, chart_script())]
    assert allowed["script-src"].split() == [f"'sha256-{one}'" for one in wanted]
    assert (allowed["default-src"], island(html, "page-library")) == ("'none'", chart_script())
    style = re.search(r"<style>(.*?)</style>", html, flags=re.DOTALL).group(1)
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in allowed["style-src"]
    assert " style=" not in html.split("<body>")[1].split('<script type="text/plain"')[0]  # the policy refuses these
    content = json.loads(island(html, "page-data"))
    assert content["data"]["things"]["value"] == [0.25, None, -0.33333]
    assert (content["charts"][0]["data"], content["tables"][0]["data"]) == (["things"], "things")
    assert len(content["data"]) == 1


def test_names_in_a_chart_s_specification_are_written_as_in_its_data():
    name = "two\u2028lines\u2029"  # which would end a line of the expressions that Vega-Lite makes of names
    colour = {"field": "id", "type": "nominal", "scale": {"domain": [name]}}
    chart = Chart("Title", {"mark": "bar", "encoding": {"color": colour}}, (Data("one", {"id": [name]}),), "One bar.")
    content = json.loads(island(Page("Title", "Kind", (chart,)).html(), "page-data"))
    assert content["charts"][0]["spec"]["encoding"]["color"]["scale"]["domain"] == content["data"]["one"]["id"]
    assert content["data"]["one"]["id"] == ["two\\u2028lines\\u2029"]
    assert "<img src" in Page("Title", "Kind", (chart,))._repr_html_()


def test_the_same_page_is_the_same_file_and_says_when_it_was_made(page, html, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert page_html(page) == html
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


def test_lines_break_where_they_may():
    columns = (Column("a", "A", "id"), Column("x" * 18, "x" * 18, "number"))
    table = Table.of("T", "d", {"a": ["y" * 17, "جيس-13"], "x" * 18: [1.0, 2.0]}, columns)
    commands = Facts((("Run", "itembank run 'جيس 5 %.csv'"),), are_commands=True)
    html = Page("Title", "Kind", (Text("Best: جيس-13, 88.8 points."), table, commands)).html()
    holds(html, "Best: جيس\u200e-13, 88.8 points.", f"{'x' * 16}<wbr>x<wbr>x</th>", f"{'y' * 16}<wbr>y</td>")
    assert ">جيس-<wbr>13</td>" in html  # what is copied has no mark
    assert "<code>itembank run &#39;جيس 5 %.csv&#39;</code>" in html
    html = Page("", "", (Text("70.5 -> 66.5 <b> --max-lost counts -4.0"),), ()).html()
    whole = '70.5 <span class="whole">-&gt;</span> 66.5 &lt;b&gt; <span class="whole">--max-lost</span> counts -4.0'
    assert f"<p>{whole}</p>" in html


def test_a_page_without_charts_brings_no_library_and_is_no_picture(tmp_path):
    html = Page("Title", "Kind", (Text("Words."),)).html()
    assert 'id="page-library"' not in html
    assert len(html) < 30_000
    chosen = ib.Selection(("item",), ("part",), np.ones(1), "random", "bank-id")
    with pytest.raises(ParameterError, match=r"has no chart to save as 'chosen\.png'"):
        ib.show(chosen).save(tmp_path / "chosen.png")
    no_figure = r"Selection has no figure to plot\. show\(\.\.\.\) gives its page\. to_polars"
    with pytest.raises(ParameterError, match=no_figure):
        chosen.plot()


def test_a_notebook_gets_words_and_still_pictures_without_scripts(page):
    shown = page._repr_html_()
    assert ("<script" in shown, "alert(1)" in shown) == (False, True)
    picture = re.search(r'<img src="data:image/svg[+]xml;base64,([^"]*)" alt="Three bars', shown).group(1)
    svg = base64.b64decode(picture).decode()
    assert COLOURS["main"].light.lower() in svg.lower()
    assert "<script" not in svg


def test_data_of_one_name_or_of_other_columns_are_refused():
    tables = [Table("T", Data("same", {"a": [k]}), (Column("a", "A"),)) for k in range(2)]
    with pytest.raises(ParameterError, match="'same' came twice"):
        Page("Title", "Kind", tuple(tables)).html()
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
    source_of, places = Path(__file__).parents[2] / "src", ("itembank/pages", "itembank_scaling/pages")
    paths = [path for place in (*places, "itembank_studies/charts") for path in (source_of / place).glob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    for column in heads(*source()["heads"]):
        assert column.kind in get_args(Kind)
        assert re.search(rf'heads\([^)]*"{column.name}"', text), column.name


@pytest.fixture(scope="module")
def estimates():
    bank = make_bank()
    answers = bank.responses.responses[:2, :20]
    responses = ib.ResponseMatrix.create(answers, model_ids=["<b>one</b>", "two"], item_ids=bank.item_ids[:20])
    return ib.estimate(bank, responses, method="p-irt", interval="model-based")


def test_estimates_show_the_number_with_its_interval_and_without_the_libraries_a_table(estimates, monkeypatch):
    shown = estimates._repr_html_().replace("\u00a0", " ")  # numbers keep to their unit
    assert ("&lt;b&gt;one&lt;/b&gt;" in shown, "<b>one" in shown) == (True, False)
    holds(shown, "95 % interval", f"{100 * estimates.column('overall')[1]:.1f} points")
    assert shown.count("<tr>") == 1 + len(estimates.rows())
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _environment.cache_clear()
    shown = estimates._repr_html_()
    assert shown.startswith("<table><caption>ScoreEstimates")
    assert "&lt;b&gt;one" in shown


def test_a_bank_shows_what_it_holds_and_its_page_is_written_by_the_name_of_the_file(tmp_path, monkeypatch):
    bank = make_bank()
    shown = bank._repr_html_().replace("\u00a0", " ")
    holds(shown, ">30</p>", "12")
    assert all(name in shown for name in bank.targets.scenarios)
    assert shown.count("<img") == shown.count('<img src="data:image/svg+xml;base64,') == 1
    page = ib.show(bank)
    assert page.title == bank_page(bank).title
    assert [one.title for one in page.sections] == [one.title for one in bank_page(bank).sections]
    assert ib.show(bank, title="Ours").title == "Ours"
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # to bundle it takes seconds
    page = ib.show(make_bank())
    assert page.save(tmp_path / "bank.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    for kind, first in (("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")):
        assert page.save(tmp_path / f"bank.{kind}").read_bytes().startswith(first)
    assert page.charts[0].title in (tmp_path / "bank.svg").read_text(encoding="utf-8").replace("\u00a0", " ")
    with pytest.raises(ParameterError, match=r"must end in"):
        page.save(tmp_path / "bank.doc")


def test_plans_audits_and_charts_begin_as_their_pages_do():
    rng = np.random.default_rng(3)
    ability, difficulty = rng.normal(size=(40, 1)), rng.normal(size=25)
    right = (rng.random((40, 25)) < 1.0 / (1.0 + np.exp(difficulty - ability))).astype(float)
    right[:, 3] = 1.0 - right[:, 3]
    items = [f"<i>{k}" for k in range(25)]
    audit = ib.diagnostics.audit_items(ib.ResponseMatrix.create(right, item_ids=items), duplicates=False)
    shown = audit._repr_html_()
    assert ("<i>" in shown, audit_page(audit).lead[1].answers[0].label in shown) == (False, True)
    assert shown.count("<table") == 1
    found = ib.plan(shared_bank(), half_width=0.2, max_items=20)
    assert (ib.show(found).lead[0].text, found._repr_html_().count("<table")) == (found.message, 1)
    result = dimensionality(make_bank().responses, candidates=(1,))
    page = ib.show(result)
    assert page.title == page.charts[0].title == dimensionality_chart(result).title
    assert result._repr_html_().startswith("<table><caption>")
    bank = make_bank(with_extras=True)
    costs, alike = ib.show(task_overview(bank.responses, cost="tokens")).charts
    assert "costs" in costs.title
    assert ib.show(task_overview(bank.responses)).charts[0].title == alike.title


def test_a_selection_shows_ten_items_with_weights_and_its_whole_explanation():
    why = "auto: random. " + "Mean errors of <b>past</b> models, cross-validated. " * 20
    ids = tuple(f"<i>{k}" for k in range(25))
    chosen = ib.Selection(ids, ("part",) * 25, np.full(25, 0.04), "random", "bank-id", explanation=why)
    shown = chosen._repr_html_()
    assert "Selection of 25 questions" in shown
    assert why.strip().replace("<", "&lt;").replace(">", "&gt;") in shown
    assert (shown.count("&lt;i&gt;"), shown.count("0.0400")) == (10, 10)
    assert ("The first 10 of 25 rows." in shown, "<i>" in shown) == (True, False)


def test_estimates_are_drawn_with_their_intervals_the_highest_first(estimates):
    (data,) = estimates.plot().data
    order = np.argsort(-estimates["overall"].value)
    assert data.columns["name"] == [estimates.model_ids[k] for k in order]
    assert data.columns["low"] == estimates["overall"].low[order].tolist()
    one = ib.estimate(make_bank(), dict.fromkeys(make_bank().item_ids[:9], 1), method="p-irt", interval="model-based")
    assert sorted(one.plot().data[0].columns["name"]) == sorted(estimates.targets)


def test_a_comparison_shows_itself_without_the_items_that_decide_and_a_dict_not_at_all():
    bank = make_bank()
    answers = ib.ResponseMatrix.create(bank.responses.responses[:2], model_ids=["a", "b"], item_ids=bank.item_ids)
    found = ib.compare(bank, answers, method="paired", target="all")
    assert ib.show(found).sections == comparison_page(found, bank, answers).sections[:-1]
    assert dict(ib.show(found).provenance)["Bank"] == bank.bank_id
    with pytest.raises(ParameterError, match=r"can be shown \(Bank, Comparison, .*ScoreEstimates.*\), got dict"):
        ib.show({})
