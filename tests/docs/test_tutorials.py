"""The tutorials, the notebook, the page on sessions and the README run as they stand, and print what they show."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import itembank
from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.selections import Selection
from itembank.estimation import folds
from itembank.readers import builtin
from itembank.readers.builtin import sample_data
from itembank.sessions.journal import read_journal
from itembank.sessions.journal_sessions import open_session, read_session, start_session
from itembank.sessions.limits import Budget
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank
from tests.bank.few_items import load_few
from tests.docs.blocks import blocks, in_bash, run_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
RUNS, GATES = DOCS / "tutorial-run.md", DOCS / "tutorial-gate.md"
PAGES = sorted({*DOCS.glob("tutorial-*.md"), DOCS / "python.md"} - {RUNS, GATES})
IN_HARNESS = [pytest.mark.harness, pytest.mark.filterwarnings("ignore")]
PARTS = [  # of the pages on runs and gates, each of which needs other programs
    pytest.param(RUNS, "1. lm-evaluation-harness", "lm_eval", marks=IN_HARNESS),
    pytest.param(RUNS, "2. Inspect", "inspect_ai", marks=IN_HARNESS),
    pytest.param(RUNS, "3. Your own program", "itembank", marks=pytest.mark.slow),
    pytest.param(GATES, "A gate for a serving engine", "lm_eval", marks=IN_HARNESS),
    pytest.param(GATES, "A gate for prompts", "inspect_ai", marks=IN_HARNESS),
    pytest.param(GATES, "A gate for any program", "itembank", marks=pytest.mark.slow),
    pytest.param(GATES, "Before you trust a margin", "itembank"),
]
VARIES = [
    (re.compile(r"\b(?=\w*\d)[0-9a-f]{12}\b"), "BANK"),  # follows the last digits of the parameters
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"[ ─│┌┐└┘├┤╞╡┆═╪╴┬┴┼]+"), " "),  # as wide as the widest number
]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def printed(text):
    return [code for language, code in blocks(text) if language == "text"]


def words_and_numbers(code):
    for pattern, name in VARIES:
        code = pattern.sub(name, code)
    return NUMBER.sub("#", code).split(), [float(number) for number in NUMBER.findall(code)]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_prints_what_it_shows(page, tmp_path, monkeypatch, request):
    """Run `python scripts/make_tutorials.py` when a change of what is printed is meant."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    if "ITEMBANK_SHARED" in text:
        monkeypatch.setenv("ITEMBANK_SHARED", str(request.getfixturevalue("shared_dir")))
    check_page(text, page.name)


@pytest.mark.parametrize(("page", "title", "program"), PARTS)
def test_part_of_a_page_prints_what_it_shows(page, title, program, tmp_path, monkeypatch):
    pytest.importorskip(program)
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    check_page(text, page.name)


def check_page(shown, name):
    """Compare what blocks show with what they print today."""
    today = run_page(shown, name)
    assert printed(shown)
    for before, now in zip(printed(shown), printed(today), strict=True):
        (words, numbers), (words_now, numbers_now) = words_and_numbers(before), words_and_numbers(now)
        assert words == words_now
        assert numbers == pytest.approx(numbers_now, rel=0.1, abs=0.05)


def test_the_tutorial_on_logs_runs_on_few_items(tmp_path, monkeypatch):
    monkeypatch.setattr(folds, "N_FOLDS_MANY", 3)
    page = next(page for page in PAGES if "logs" in page.stem)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtin, "load_builtin", lambda name: load_few(name, every_item=14))
    text = page.read_text(encoding="utf-8").replace("--dims 5", "--dims 1 --no-folds").replace("-n 100", "-n 20")
    assert "100/100" not in printed(run_page(text, page.name))[-2]


NOTEBOOK = DOCS / "first-steps.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_cells():
    """All cells share one namespace; returns it."""
    namespace = {"__name__": "notebook"}
    for number, cell in enumerate(CELLS, start=1):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)  # noqa: S102
    return namespace


def test_notebook_runs_on_few_items(monkeypatch):
    # for this test alone: as the fixture `few_folds` it would change what the tutorials of this module print
    monkeypatch.setattr(folds, "N_FOLDS_FEW", 3)
    monkeypatch.setattr(itembank, "load_builtin", lambda name: load_few(name, every_item=14, every_model=3))
    assert run_cells()["error"] < 0.15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")  # some of the built-in models answer alike
def test_notebook_runs():
    found = run_cells()
    assert found["error"] < 0.03
    assert found["held"] > 0.85


def test_every_tutorial_shows_what_it_prints_and_the_notebook_nothing():
    for page in (*PAGES, RUNS, GATES):
        assert all(code.strip() for code in printed(page.read_text(encoding="utf-8"))), page.name
    assert len(PAGES) == 6
    assert len(CELLS) > 3
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS)


PAGE = DOCS / "sessions.md"
BLOCKS = blocks(PAGE.read_text(encoding="utf-8"))


def asked(journal):
    return [event["item_ids"] for event in read_journal(journal).events if event["event"] == "asked"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")  # some of the built-in models answer alike
def test_the_page_runs_and_its_two_loops_agree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "example"}, []
    for language, code in BLOCKS:
        if language == "python":
            exec(compile(code, "sessions.md", "exec"), namespace)  # noqa: S102
        elif language == "sh":
            printed.append(in_bash(code))
    shell, python = read_session("run.jsonl"), read_session("python.jsonl")
    assert shell.reason_stopped == python.reason_stopped is not None
    assert asked("run.jsonl") == asked("python.jsonl")
    found, other = shell.estimate().scores, python.estimate().scores
    for name in ("value", "low", "high"):  # two processes may place arrays otherwise, which moves the last digits
        np.testing.assert_allclose(getattr(found, name), getattr(other, name), rtol=1e-9)
    assert f"Score {100.0 * shell.estimate().scores.rows()[-1]['estimate']:.1f} ±" in printed[1]
    assert printed[-1].count('"event":"told"') == 3
    known = namespace["response"]
    assert {item: answer.response for item, answer in shell.told.items()} == {item: known[item] for item in shell.told}


def test_the_loop_of_the_page_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    """On a small bank: one item is told, two are in hand, when the loop begins again; each turn starts programs."""
    monkeypatch.chdir(tmp_path)
    save_bank(make_bank(), tmp_path / "bank")
    bank = load_bank(tmp_path / "bank")
    with start_session(tmp_path / "run.jsonl", bank, SessionSpec(budget=Budget(3)), model_id="m") as session:
        first = session.ask(3)
        session.tell(first[0], 1.0)
    rows = [f'"{item}",{number % 2},0.5' for number, item in enumerate(bank.item_ids)]
    (tmp_path / "new-model.csv").write_text("\n".join(["item_id,response,seconds", *rows]))
    shell = [code for language, code in BLOCKS if language == "sh"]
    loop = re.search(r"^while .*^done$", shell[1], flags=re.MULTILINE | re.DOTALL)[0]
    in_bash(shell[0] + loop)
    with open_session(tmp_path / "run.jsonl", bank) as session:
        assert (session.reason_stopped, session.pending, session.n_items) == ("budget: 3 items", (), 3)
        assert set(first) == set(session.told)
        assert session.costs == {"seconds": 1.0}


README = DOCS.parent / "README.md"
DECIMAL = re.compile(r"\d+\.\d+")
DIGEST = re.compile(r"\bbank [0-9a-f]{12}\b")
"""A digest of parameters, whose last digits are the processor's."""


def of_language(language):
    return [code for name, code in blocks(README.read_text(encoding="utf-8")) if name == language]


@pytest.mark.slow
def test_what_is_printed_is_what_comes_of_commands_and_of_python(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (commands,), (shown,), (code,) = of_language("sh"), of_language("text"), of_language("python")
    for line in commands.splitlines():
        outcome = run.ok(*shlex.split(line, comments=True)[1:])
    printed, shown = (DIGEST.sub("bank", text) for text in (outcome.out, shown))
    assert DECIMAL.sub("#", printed).split() == DECIMAL.sub("#", shown).split()
    numbers = zip(DECIMAL.findall(printed), DECIMAL.findall(shown), strict=True)
    assert [pair for pair in numbers if abs(float(pair[0]) - float(pair[1])) > 0.2] == []  # other processors round
    again = run(*shlex.split(commands.splitlines()[-1])[1:], "--format", "json")
    namespace = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), namespace)  # noqa: S102
    assert (tmp_path / "my-bank").is_dir()
    chosen = Selection.load(tmp_path / "selection.json").to_dict()
    chosen["explanation"] = chosen["explanation"].replace("--method v-optimal", "method='v-optimal'")
    assert namespace["selection"].to_dict() == chosen
    assert namespace["estimates"].rows() == again.json["rows"]  # to the last digit


def test_the_readme_stays_short_and_the_true_score_is_the_one_it_names():
    _, new = sample_data()
    tasks = new.items["scenario"].to_numpy()
    means = [new.responses[0, tasks == task].mean() for task in dict.fromkeys(tasks.tolist())]
    said = re.search(r"true overall score of this model is ([\d.]+) points\.\s", README.read_text(encoding="utf-8"))
    assert f"{100 * sum(means) / len(means):.1f}" == said[1]
    # a stranger reads it in two minutes: at most 140 lines and 40 numbers in its prose and tables
    text = README.read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|\]\([^)]*\)", "", text, flags=re.DOTALL)
    assert len(text.splitlines()) <= 140
    assert len(re.findall(r"(?<![\w.])\d[\d.,]*", prose)) <= 40
