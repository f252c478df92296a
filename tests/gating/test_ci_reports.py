"""A verdict for CI systems, read back as these read it: an XML parser, GitHub's workflow commands, CommonMark."""

import importlib
import re
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from markdown_it import MarkdownIt

from itembank.errors import visible
from itembank.gating.ci_reports import github_annotation, junit_xml, step_summary
from itembank.gating.gate import gate
from itembank.gating.stages import GatePlan, start_gate
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix

HOSTILE = (
    "]]><failure/>&amp;",
    "<script>alert(1)</script>",
    "a\r\n::error title=x::y",
    "\x00\x1b[2J\x07\ufffe",
    "🙂 100 %, a:b",
    "a|b\\|c `x` **y** [z](https://e.org) www.e.org <!-- # ~~s~~",
    "1. one\n\n# two\n| a | b |\n",
)
RIGHT = np.arange(2000) % 2
FELL = {"pass": 0, "fail": 120, "undecided": 34}
CODES = {"pass": 0, "fail": 1, "undecided": 3}


def answers(name, n_fell=0, scenarios=HOSTILE):
    """One model that got half of the items right, but for so many of them."""
    values = RIGHT.astype(float)
    values[np.flatnonzero(RIGHT)[:n_fell]] = 0.0
    rows = {"item_id": [f"q{k}" for k in range(2000)], "scenario": [scenarios[k % len(scenarios)] for k in range(2000)]}
    return ResponseMatrix.create(values[None], model_ids=[name], items=pl.DataFrame(rows))


def read_xml(text):
    return ElementTree.fromstring(text.encode())  # noqa: S314 (we wrote it)


@pytest.fixture(scope="module", params=FELL)
def found(request):
    made = gate(answers(HOSTILE[2]), answers("".join(HOSTILE), FELL[request.param]))
    assert made.verdict == request.param
    return made


ALLOWED = {  # of the elements that are used: attributes and children by junit-10.xsd, and the attributes it demands
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}, set()),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id"},
        {"properties", "testcase", "system-out", "system-err"},
        {"name", "tests", "failures", "errors"},
    ),
    "properties": (set(), {"property"}, set()),
    "property": ({"name", "value"}, set(), {"name", "value"}),
    "testcase": ({"name", "time", "classname"}, {"skipped", "error", "failure", "system-out", "system-err"}, {"name"}),
    "failure": ({"type", "message"}, set(), set()),
    "error": ({"type", "message"}, set(), set()),
    "skipped": ({"type", "message"}, set(), set()),
    "system-out": (set(), set(), set()),
}


def suite_of(text):
    """The one suite of a report that is valid."""
    root = read_xml(text)
    for element in root.iter():
        attributes, children, needed = ALLOWED[element.tag]
        assert needed <= set(element.attrib) <= attributes
        assert {one.tag for one in element} <= children
    (suite,) = root
    return suite


def test_junit_is_valid_and_says_the_verdict_once(found):
    suite = suite_of(junit_xml(found))
    cases, told = suite.findall("testcase"), {"fail": "failures", "undecided": "skipped"}.get(found.verdict)
    tags = {"failures": "failure", "skipped": "skipped"}
    for count, tag in tags.items():
        assert len(list(suite.iter(tag))) == int(suite.get(count)) == (count == told)
    assert int(suite.get("tests")) == len(cases) == 1 + len(HOSTILE)
    assert [one.get("name") for one in cases[1:]] == [visible(one.scenario) for one in found.scenarios]
    whole = cases[0] if told is None else cases[0].find(tags[told])
    assert found.sentence in (whole.findtext("system-out") if told is None else whole.get("message"))
    assert not any(len(one) > 1 or one[0].tag != "system-out" for one in cases[1:])
    properties = {one.get("name"): one.get("value") for one in suite.find("properties")}
    assert float(properties["difference"]) == found.difference


def read_annotation(text):
    """The command, title and message of an annotation, as the runner parses it (ActionCommand.TryParseV2)."""
    assert text.isprintable()
    head, data = text.removeprefix("::").split("::", 1)
    command, _, properties = head.partition(" ")
    ((name, title),) = (one.split("=", 1) for one in properties.split(","))
    assert name == "title"
    for escaped, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        title, data = title.replace(escaped, letter), data.replace(escaped, letter)
    return command, title, data


def test_an_annotation_is_one_command_and_holds_the_sentence(found):
    command, title, data = read_annotation(github_annotation(found))
    assert command == {"pass": "notice", "fail": "error", "undecided": "warning"}[found.verdict]
    assert (title, data) == (f"itembank gate: {visible(found.candidate_id)}", found.sentence)


def test_a_summary_holds_names_as_text_and_nothing_else(found):
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(step_summary(found))
    kinds, inline = [one.type for one in tokens], [one.children for one in tokens if one.type == "inline"]
    assert (kinds.count("heading_open"), kinds.count("table_open"), kinds.count("html_block")) == (1, 2, 0)
    assert {one.type for children in inline for one in children} == {"text"}
    texts = ["".join(one.content for one in children) for children in inline]
    assert {found.sentence, *(visible(one).strip() for one in HOSTILE)} <= set(texts)


def test_of_many_scenarios_a_summary_has_those_that_changed_most():
    names = [f"s{k:02d}" for k in range(40)]
    base = answers("old", scenarios=names)
    values = base.responses.copy()
    values[0, np.flatnonzero((np.arange(2000) % 40 == 7) & (RIGHT == 1))] = 0.0
    text = step_summary(gate(base, ResponseMatrix.create(values, model_ids=["new"], items=base.items)))
    named = re.findall(r"^\| (s\d\d) ", text, re.MULTILINE)
    assert (named[0], len(named), "the 10 of 40" in text) == ("s07", 10, True)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    write_responses(answers("old"), tmp_path / "old.parquet")
    for name, n_fell in FELL.items():
        write_responses(answers(f"\n::error::{name}", n_fell), tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize("verdict", FELL)
@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_each_output_keeps_the_exit_code_and_what_programs_read(run, files, verdict, form):
    both = files / "old.parquet", files / f"{verdict}.parquet"
    plain = run("gate", *both, "--format", form)
    (files / "summary.md").write_text("before\n")
    told = run("gate", *both, "--format", form, "--junit", files / "gate.xml", "--github")
    assert plain.code == told.code == CODES[verdict], told.err
    assert read_xml((files / "gate.xml").read_text(encoding="utf-8")).tag == "testsuites"
    assert (files / "summary.md").read_text().startswith(f"before\n### itembank gate: {verdict}\n")
    said = told.out.removeprefix(plain.out) if form == "table" else told.err
    assert len([line for line in said.splitlines() if line.startswith("::")]) == 1
    assert form == "table" or told.out == plain.out
    assert form != "json" or told.json["verdict"] == verdict


def test_items_to_run_are_all_that_stands_on_standard_output(run, files):
    folder = files / "gate"
    run.ok("gate", "start", files / "old.parquet", "-o", folder)
    plan = GatePlan.load(folder)
    asked = answers("new", 34).take(items=answers("new").item_indices(plan.next_items()))
    write_responses(asked, files / "new.parquet")
    told = run("gate", "next", folder, files / "new.parquet", "--github", "--junit", files / "gate.xml")
    assert told.code == 3, told.err
    assert (told.out.splitlines(), "::warning title=" in told.err) == (list(plan.next_items(asked.item_ids)), True)
    assert read_xml((files / "gate.xml").read_text()).find(".//skipped") is not None


RAISED = {"echo stop": KeyboardInterrupt, "echo leave": SystemExit, "echo fault": ZeroDivisionError}
WITHOUT_VERDICT = {  # what stands for `gate`, its exit code, and what is said
    "no results": (("old.parquet", "empty"), 5, "there must be files of results"),
    "cut off": (("old.parquet", "cut.parquet"), 5, "cut.parquet"),
    "a hostile name": (("old.parquet", "a%0A::error::b"), 5, "there must be files of results"),
    "no such file": (("old.parquet", "nowhere"), 2, "'nowhere' does not exist"),
    "a wrong option": (("old.parquet", "old.parquet", "--margn", "1"), 2, "--margn"),
    "a wrong value": (("old.parquet", "old.parquet", "--margin", "-1"), 2, "margin"),
    "other items": (("old.parquet", "other.parquet"), 5, "item"),
    "no gate": (("next", "empty", "old.parquet"), 5, "gate"),
    "a damaged gate": (("next", "damaged", "old.parquet"), 4, "damaged"),
    "a stage half run": (("next", "gate", "empty"), 5, "there must be files of results"),
    "ten failures": (("next", "gate", "--command", "false", "--model-id", "m"), 5, "10 attempts in a row failed"),
    "stopped": (("next", "gate", "--command", "echo stop", "--model-id", "m"), 5, "the command was stopped"),
    "ended by a harness": (("next", "gate", "--command", "echo leave", "--model-id", "m"), 5, "ended by itself"),
    "a fault of ours": (("next", "gate", "--command", "echo fault", "--model-id", "m"), 5, "ZeroDivisionError"),
}


@pytest.fixture(scope="module")
def nothing_to_judge(tmp_path_factory):
    """Results that cannot be judged, and gates, one of them damaged."""
    folder = tmp_path_factory.mktemp("nothing")
    for name in ("empty", "a%0A::error::b"):
        (folder / name).mkdir()
    old = answers("old")
    write_responses(old, folder / "old.parquet")
    (folder / "cut.parquet").write_bytes((folder / "old.parquet").read_bytes()[:2000])
    items = pl.DataFrame({"item_id": [f"x{k}" for k in range(9)]})
    write_responses(ResponseMatrix.create(old.responses[:, :9], items=items), folder / "other.parquet")
    for name in ("gate", "damaged"):
        start_gate(old).save(folder / name)
    plan = folder / "damaged" / "gate.json"
    plan.write_text(plan.read_text().replace("0.02", "0.03"))
    return folder


@pytest.mark.parametrize(("words", "code", "said"), WITHOUT_VERDICT.values(), ids=WITHOUT_VERDICT)
def test_without_a_verdict_every_output_says_why_and_the_code_is_that_of_no_verdict(
    run, nothing_to_judge, tmp_path, monkeypatch, words, code, said
):
    """Nothing was written, and the code was that of FAIL; if a harness called `sys.exit()`, that of PASS."""
    monkeypatch.chdir(nothing_to_judge)
    report, summary = tmp_path / "gate.xml", tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    raised = next((error for word, error in RAISED.items() if word in words), None)
    if raised is not None:

        def drive(*_given, **_more):
            raise raised

        monkeypatch.setattr(importlib.import_module("itembank.harnesses.drive"), "drive", drive)
    plain, done = run("gate", *words, "--debug"), run("gate", *words, "--github", "--junit", report)
    assert (plain.code, done.code, plain.out, done.out) == (code, code, "", ""), done.err
    assert said in plain.err
    (line,) = [one for one in done.err.splitlines() if one.startswith("::")]
    command, title, reason = read_annotation(line)
    assert (command, title, said in reason) == ("error", "itembank gate: no verdict", True)
    suite = suite_of(report.read_text(encoding="utf-8"))
    assert [suite.get(name) for name in ("tests", "errors", "failures", "skipped")] == ["1", "1", "0", "0"]
    assert suite.find("testcase/error").text == reason
    tokens = MarkdownIt("commonmark", {"html": True}).parse(summary.read_text())
    texts = ["".join(part.content for part in one.children) for one in tokens if one.type == "inline"]
    assert texts == [title, *reason.splitlines()]


def test_a_run_says_that_there_is_no_verdict_only_if_it_has_a_gate(run, files, monkeypatch):
    monkeypatch.chdir(files)
    run.ok("gate", "start", "old.parquet", "-o", "gate")
    words = ("run", "lm-eval", "old.parquet", "-o", "out", "--gate", "gate", "--junit", "gate.xml", "--github")
    refused = run(*words, "--", "--model", "m")
    assert (refused.code, "::error title=itembank gate%3A no verdict::" in refused.err) == (2, True)
    assert suite_of((files / "gate.xml").read_text()).get("errors") == "1"
    alone = run("run", "inspect", "old.parquet", "task.py", "-o", "out", "-n", 2, "--", "--model", "m")
    assert (alone.code, "::" in alone.err) == (2, False)


@pytest.mark.parametrize("option", ["--junit", "--github"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(run, files, monkeypatch, option):
    nowhere = files / "old.parquet" / "gate.xml"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(nowhere))
    words = [option, nowhere] if option == "--junit" else [option]
    refused = run("gate", files / "old.parquet", files / "fail.parquet", *words)
    assert (refused.code, "cannot be written" in refused.err, refused.out) == (2, True, "")
