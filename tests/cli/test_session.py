"""`itembank session`: a loop that any shell can run, and what it says when something is wrong."""

import errno
import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from itembank.adaptive.journal import Journal, read_journal
from itembank.adaptive.limits import Budget, Decision, Stopping
from itembank.adaptive.prior_specs import GroupPrior, RegressionPrior
from itembank.adaptive.session import AdaptiveSession
from itembank.adaptive.settings import SessionSettings
from itembank.cli.session_options import CRITERIA as OFFERED
from itembank.cli.session_options import GOALS
from itembank.data.bank_files import load_bank, save_bank
from itembank.data.costs import CostUnit
from itembank.data.readers.read import read_responses
from itembank.data.response_files import write_responses
from itembank.selection.constraints import Constraints
from itembank.selection.criteria import CRITERIA, DOptimality, VOptimality
from tests.adaptive.session_worker import response_to
from tests.data.banks import make_bank


@pytest.fixture
def bank_folder(tmp_path):
    save_bank(make_bank(n_items=60, with_extras=True), tmp_path / "bank")
    return tmp_path / "bank"


@pytest.fixture
def stdin(monkeypatch):
    """Put text or bytes on standard input."""

    def put(content):
        content = content.encode() if isinstance(content, str) else content
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


@pytest.fixture
def journal(run, bank_folder, tmp_path):
    """A session that has just begun, of six items at most."""
    options = ("--model-id", "new/model", *LIMIT, *FAST)
    outcome = run("session", "start", bank_folder, "-o", tmp_path / "run.jsonl", *options)
    assert (outcome.code, outcome.out) == (0, "")
    return tmp_path / "run.jsonl"


LIMIT = ("--max-items", 6)
FAST = ("--interval", "model-based")
"""Calibrated intervals take a fit for every fold."""


def settings_of(journal):
    return SessionSettings.from_dict(read_journal(journal).header["settings"])


def ids(run, journal, *options):
    return run("session", "ask", journal, "--format", "ids", *options).out.splitlines()


def play(run, journal, *options):
    """Run the loop that the documentation shows; return the exit code of the last question."""
    while True:
        asked = run("session", "ask", journal, "--format", "ids", *options)
        if asked.code or not asked.out:
            return asked.code
        for item in asked.out.splitlines():
            assert run("session", "tell", journal, item, "--response", response_to(item)).code == 0


def test_every_criterion_and_goal_of_the_library_is_offered():
    assert tuple(CRITERIA.kinds) == OFFERED
    for goal in GOALS:
        assert VOptimality(of=goal).of == goal


def test_a_loop_ends_with_the_numbers_of_a_session_in_python(run, bank_folder, journal):
    assert play(run, journal) == 0
    session = AdaptiveSession(load_bank(bank_folder), budget=Budget(6), model_id="new/model", interval="model-based")
    while items := session.ask():
        session.tell(items[0], response_to(items[0]))
    status = json.loads(run("session", "status", journal, "--format", "json").out)
    assert status["scores"] == session.estimate().scores.rows()
    assert status["ability"] == session.estimate().theta.tolist()
    assert (status["n_items"], status["reason_stopped"]) == (6, "budget: 6 items")


def test_options_become_settings(run, bank_folder, tmp_path):
    (tmp_path / "exclude.txt").write_text("math/0\ncode/1\n")
    options = (
        *("--criterion", "d-optimal", "--cost", "output_tokens", "--target", "math", "--n-start", 3, "--seed", 5),
        *("--max-items", 40, "--max-cost", "output_tokens=5000", "--ability-error", 0.2),
        *("--half-width", 0.05, "--half-width", "overall=0.1", "--threshold", 0.6, "--confidence", 0.9),
        *("--level", 0.8, "--min-items", 4, "--at-least", "math=2", "--at-least", "law=1", "--at-most", 15),
        *("--exclude", tmp_path / "exclude.txt", "--randomesque", 2, "--prior-group", "size=3", *FAST),
    )
    assert run("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options).code == 0
    assert settings_of(tmp_path / "j") == SessionSettings(
        criterion=DOptimality(per_cost=True),
        cost=CostUnit("output_tokens"),
        target="math",
        budget=Budget(40, {"output_tokens": 5000.0}),
        stopping=Stopping(0.2, {"math": 0.05, "overall": 0.1}, Decision("math", 0.6, None, 0.9), 0.8, 4),
        constraints=Constraints({"math": 2, "law": 1}, 15, ("math/0", "code/1"), 2),
        prior=GroupPrior("size", "3"),
        n_start=3,
        seed=5,
        model_id="m",
        interval="model-based",
    )


def test_more_options_become_settings(run, bank_folder, tmp_path):
    options = (
        *("--of", "score", "--cost", "tokens", "--input-weight", 0.25, "--max-tokens", 900, "--at-least", 1),
        *("--better-than", "org/model-3", "--prior-known", "size=4.5", *FAST),
    )
    assert run("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options).code == 0
    settings = settings_of(tmp_path / "j")
    assert settings.criterion == VOptimality(of="score", per_cost=True)
    assert settings.cost == CostUnit("tokens", 0.25)
    assert settings.budget == Budget(costs={"tokens": 900.0})
    assert settings.stopping.decision == Decision("overall", model="org/model-3")
    assert settings.constraints == Constraints(at_least=1)
    assert settings.prior == RegressionPrior(("size",), {"size": "4.5"})


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--half-width", "wide"), 2, "NAME=NUMBER"),
        (("--half-width", "nan"), 2, "half-width of 'overall' must be a number"),
        (("--half-width", "physics=0.1"), 2, "physics"),
        (("--half-width", "0.1", "--half-width", "overall=0.2"), 2, "once for 'overall'"),
        (("--max-cost", "300"), 2, "NAME=NUMBER"),
        (("--max-cost", "euros=300"), 1, "euros"),
        (("--max-cost", "output_tokens=0"), 2, "budget of output_tokens"),
        (("--max-tokens", "5", "--max-cost", "tokens=6"), 2, "give one of them"),
        (("--at-least", "math=1.5"), 2, "whole number"),
        (("--at-least", "-1"), 2, "whole number"),
        (("--at-least", "math=inf"), 2, "whole number"),
        (("--at-least", "physics=1"), 2, "physics"),
        (("--at-least", "math=4", "--at-most", "3"), 2, "math (4 > 3)"),
        (("--at-least", "math=7"), 2, "7 items in all, and 6"),
        (("--threshold", "0.5", "--better-than", "org/model-1"), 2, "two questions"),
        (("--threshold", "50"), 2, "threshold"),
        (("--better-than", "unheard"), 1, "unheard"),
        (("--prior-group", "size"), 2, "COLUMN=VALUE"),
        (("--prior-group", "colour=red"), 1, "colour"),
        (("--prior-group", "size=1.5", "--prior-known", "size=1.5"), 2, "two ways"),
        (("--criterion", "fisher"), 2, "2 dimensions"),
        (("--criterion", "random", "--of", "score"), 2, "v-optimal"),
        (("--target", "physics"), 2, "physics"),
        (("--model-id", ""), 2, "model_id"),
    ],
)
def test_choices_that_do_not_fit_leave_no_journal(run, bank_folder, tmp_path, options, code, message):
    outcome = run("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *LIMIT, *FAST, *options)
    assert message in outcome.err
    assert outcome.code == code
    assert not (tmp_path / "j").exists()


def test_calibrated_intervals_are_found_when_the_session_starts(run, bank_folder, tmp_path, monkeypatch):
    journal = tmp_path / "j"
    assert run("session", "start", bank_folder, "-o", journal, "--model-id", "m", "--half-width", 0.1).code == 0
    monkeypatch.setattr("itembank.adaptive.trial._run", None)  # what was found then is in the bank now
    run("session", "tell", journal, "math/0", "--response", 1)
    assert len(ids(run, journal)) == 1
    rows = json.loads(run("session", "status", journal, "--format", "json").out)["scores"]
    assert {row["interval"] for row in rows} == {"calibrated"}


def test_a_session_is_never_started_over(run, bank_folder, journal):
    before = journal.read_bytes()
    outcome = run("session", "start", bank_folder, "-o", journal, "--model-id", "other")
    assert (outcome.code, journal.read_bytes()) == (1, before)
    assert "there already" in outcome.err


def test_asks_the_same_again_until_told(run, journal):
    three = ids(run, journal, "-n", 3)
    assert len(set(three)) == 3
    assert ids(run, journal) == three[:1]
    assert ids(run, journal, "-n", 5) == three
    run("session", "tell", journal, three[1], "--response", 1)
    assert ids(run, journal, "-n", 2) == [three[0], three[2]]
    run("session", "tell", journal, three[0], "--failed", "--again")
    run("session", "tell", journal, three[2], "--failed")
    assert three[2] not in ids(run, journal, "-n", 2)


def test_a_batch_that_was_interrupted_ends_as_it_would_have(run, bank_folder, tmp_path):
    ends = []
    for name in ("whole", "interrupted"):
        journal = tmp_path / name
        run("session", "start", bank_folder, "-o", journal, "--model-id", "m", "--max-items", 12, *FAST)
        if name == "interrupted":
            for item in ids(run, journal, "-n", 4)[:3]:
                run("session", "tell", journal, item, "--response", response_to(item))
        play(run, journal, "-n", 4)
        content = json.loads(run("session", "status", journal, "--format", "json").out)
        ends.append((content["scores"], content["ability"], read_journal(journal).events))
    assert ends[0] == ends[1]


def test_new_items_are_for_further_workers(run, journal):
    asked = [*ids(run, journal, "-n", 2), *ids(run, journal, "--new", "-n", 2), *ids(run, journal, "--new")]
    assert len(set(asked)) == 5


def test_json_says_where_to_find_an_item(run, bank_folder, journal):
    content = json.loads(run("session", "ask", journal, "-n", 2).out)
    items = load_bank(bank_folder).responses.items
    for item in content["items"]:
        row = items.filter(pl.col("item_id") == item["item_id"]).to_dicts()[0]
        assert item == {name: row[name] for name in ("item_id", "scenario", "subscenario")} | {"is_new": True}
    assert (content["n_items"], content["n_pending"], content["reason_stopped"]) == (0, 2, None)
    again = json.loads(run("session", "ask", journal, "-n", 3).out)
    assert [item["is_new"] for item in again["items"]] == [False, False]


def test_items_in_hand_at_the_end_of_the_budget_are_still_to_be_answered(run, journal):
    asked = ids(run, journal, "-n", 9)
    assert len(asked) == 6
    outcome = run("session", "ask", journal, "--new", "--format", "ids")
    assert (outcome.code, outcome.out) == (0, "")
    assert "budget: 6 items" in outcome.err
    assert ids(run, journal, "-n", 9) == asked


def test_a_stopped_session_asks_nothing(run, journal):
    assert play(run, journal) == 0
    content = json.loads(run("session", "ask", journal).out)
    assert (content["items"], content["reason_stopped"], content["n_items"]) == ([], "budget: 6 items", 6)


def test_exit_code_says_whether_the_precision_was_reached(run, bank_folder, tmp_path):
    for name, width, code in (("wide", 0.4, 0), ("narrow", 0.001, 3)):
        journal = tmp_path / name
        start = (
            "session",
            "start",
            bank_folder,
            "-o",
            journal,
            "--model-id",
            "m",
            *LIMIT,
            *FAST,
            "--half-width",
            width,
        )
        assert run(*start).code == 0
        assert run("session", "status", journal).code == 0
        assert play(run, journal, "-n", 2) == code
        outcome = run("session", "status", journal, "--format", "json")
        assert outcome.code == code
        assert json.loads(outcome.out)["is_precise"] is (code == 0)
        assert run("session", "tell", journal, "math/0", "--response", 1).code == 0


def test_a_precise_session_asks_nothing_new_but_ends_what_it_began(run, bank_folder, tmp_path):
    journal = tmp_path / "j"
    run("session", "start", bank_folder, "-o", journal, "--model-id", "m", "--half-width", 0.4, *FAST)
    asked = ids(run, journal, "-n", 30)
    for item in asked[:-1]:
        run("session", "tell", journal, item, "--response", response_to(item))
    assert json.loads(run("session", "status", journal, "--format", "json").out)["is_precise"]
    outcome = run("session", "ask", journal, "--new", "--format", "ids")
    assert (outcome.code, outcome.out) == (0, "")
    assert "half-width of overall" in outcome.err
    assert ids(run, journal, "-n", 5) == asked[-1:]
    run("session", "tell", journal, asked[-1], "--failed")
    assert ids(run, journal) == []


def test_tells_responses_counts_costs_failures_and_corrections(run, journal):
    asked = ids(run, journal, "-n", 3)
    run("session", "tell", journal, asked[0], "--response", 0.25, "--cost", "seconds=1.5", "--cost", "output_tokens=7")
    run("session", "tell", journal, asked[1], "--correct", 3, "--trials", 4)
    run("session", "tell", journal, asked[2], "--failed", "--again", "--reason", "timeout")
    run("session", "tell", journal, asked[0], "--response", 0.5)
    run("session", "tell", journal, "law/59", "--failed")
    events = [dict(event) for event in read_journal(journal).events[1:]]
    assert events == [
        {
            "event": "told",
            "item_id": asked[0],
            "response": 0.25,
            "costs": {"seconds": 1.5, "output_tokens": 7.0},
            "was_asked": True,
            "is_correction": False,
        },
        {
            "event": "told",
            "item_id": asked[1],
            "response": 0.75,
            "n_correct": 3,
            "n_trials": 4,
            "costs": {},
            "was_asked": True,
            "is_correction": False,
        },
        {"event": "failed", "item_id": asked[2], "again": True, "reason": "timeout", "costs": {}},
        {
            "event": "told",
            "item_id": asked[0],
            "response": 0.5,
            "costs": {},
            "was_asked": True,
            "is_correction": True,
        },
        {"event": "failed", "item_id": "law/59", "again": False, "reason": "", "costs": {}},
    ]


def test_tells_many_at_once(run, journal, stdin):
    asked = ids(run, journal, "-n", 3)
    stdin("\n".join(json.dumps({"item_id": item, "response": 1, "costs": {"seconds": 2}}) for item in asked))
    content = json.loads(run("session", "tell", journal, "-").out)
    assert (content["told"], content["n_items"], content["n_pending"]) == (asked, 3, 0)
    assert content["costs"] == {"seconds": 6.0}


@pytest.mark.parametrize(
    "content",
    ["", '{"item_id": "math/0", "response": 1}\nnonsense', '{"item_id": "unheard", "response": 1}', b"\xff\xfe"],
)
def test_of_many_answers_all_or_none_are_told(run, journal, stdin, content):
    before = journal.read_bytes()
    stdin(content)
    outcome = run("session", "tell", journal, "-")
    assert (outcome.code, outcome.out, journal.read_bytes()) == (1, "", before)
    assert outcome.err.startswith("Error: ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "which ITEM"),
        (("math/0",), 2, "Give one of"),
        (("math/0", "--response", "1", "--failed"), 2, "Give one of"),
        (("math/0", "--correct", "1"), 2, "belong together"),
        (("math/0", "--response", "1", "--again"), 2, "belong to --failed"),
        (("math/0", "--response", "1", "--cost", "7"), 2, "NAME=NUMBER"),
        (("math/0", "--response", "1", "--cost", "seconds=-7"), 1, "finite number >= 0"),
        (("math/0", "--response", "1", "--cost", "seconds=nan"), 1, "finite number >= 0"),
        (("math/0", "--response", "1.01"), 1, "[0, 1]"),
        (("math/0", "--response", "nan"), 1, "[0, 1]"),
        (("math/0", "--correct", "2", "--trials", "1"), 1, "n_correct"),
        (("unheard", "--response", "1"), 1, "'unheard'"),
        (("", "--response", "1"), 1, "item_id"),
        (("-", "--response", "1"), 2, "standard input"),
    ],
)
def test_a_bad_answer_changes_nothing(run, journal, arguments, code, message):
    before = journal.read_bytes()
    outcome = run("session", "tell", journal, *arguments)
    assert (outcome.code, outcome.out, journal.read_bytes()) == (code, "", before)
    assert message in outcome.err


def test_status_changes_nothing_and_shows_costs_and_scores(run, journal):
    run("session", "tell", journal, "math/0", "--response", 1, "--cost", "seconds=2.5")
    before = journal.read_bytes()
    outcome = run("session", "status", journal)
    assert journal.read_bytes() == before
    for text in ("new/model", "2.5 seconds", "95 % interval", "1/60"):
        assert text in outcome.out
    rows = run("session", "status", journal, "--format", "csv").out.splitlines()
    assert len(rows) == 5


def test_status_works_while_the_session_is_open_and_telling_does_not(run, journal):
    with Journal.open(journal):
        assert run("session", "status", journal).code == 0
        for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1)):
            outcome = run("session", *arguments, "--wait", 0)
            assert (outcome.code, outcome.out) == (1, "")
            assert "another process" in outcome.err


def test_exports_answers_that_estimate_reads(run, bank_folder, journal, tmp_path):
    play(run, journal)
    run("session", "tell", journal, "math/0", "--correct", 1, "--trials", 4, "--cost", "seconds=2")
    outcome = run("session", "export", journal, "-o", tmp_path / "answers.parquet")
    assert (outcome.code, outcome.out) == (0, "")
    responses = read_responses([tmp_path / "answers.parquet"])
    assert responses.model_ids == ["new/model"]
    told = {event["item_id"]: event for event in read_journal(journal).events if event["event"] == "told"}
    assert set(responses.item_ids) == set(told)
    row = responses.responses[0]
    assert row.tolist() == [told[item]["response"] for item in responses.item_ids]
    place = responses.item_ids.index("math/0")
    assert (row[place], responses.n_trials[0, place], responses.costs["seconds"][0, place]) == (0.25, 4, 2.0)
    assert np.isnan(np.delete(responses.costs["seconds"][0], place)).all()
    estimates = run(
        "estimate", bank_folder, tmp_path / "answers.parquet", "--method", "p-irt", "--interval", "model-based",
        "--format", "json",
    )  # fmt: skip
    assert json.loads(estimates.out)[-1]["n_items"] == len(told)


def test_exports_to_the_terminal(run, journal):
    outcome = run("session", "export", journal)
    assert outcome.code == 1
    assert "got none" in outcome.err
    run("session", "tell", journal, "math/0", "--response", 1, "--cost", "seconds=2")
    rows = json.loads(run("session", "export", journal, "--format", "json").out)
    assert rows == [
        {
            "model_id": "new/model",
            "item_id": "math/0",
            "scenario": "math",
            "subscenario": "part 0",
            "response": 1.0,
            "seconds": 2.0,
        }
    ]


def test_failed_and_corrected_answers_are_not_exported(run, journal):
    run("session", "tell", journal, "math/0", "--response", 1)
    run("session", "tell", journal, "math/3", "--response", 1)
    run("session", "tell", journal, "math/3", "--response", 0)
    run("session", "tell", journal, "math/0", "--failed")
    rows = json.loads(run("session", "export", journal, "--format", "json").out)
    assert [(row["item_id"], row["response"]) for row in rows] == [("math/3", 0.0)]


def test_bank_and_journal_can_be_moved_together(run, bank_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert run("session", "start", "bank", "-o", "runs/j", "--model-id", "m", *FAST).code == 0
    (tmp_path / "elsewhere").mkdir()
    shutil.move("bank", "elsewhere/bank")
    shutil.move("runs", "elsewhere/runs")
    assert len(ids(run, tmp_path / "elsewhere" / "runs" / "j")) == 1


def test_a_bank_that_has_moved_is_named(run, bank_folder, journal, tmp_path):
    bank_folder.rename(tmp_path / "moved")
    outcome = run("session", "ask", journal)
    assert (outcome.code, outcome.out) == (1, "")
    assert "--bank" in outcome.err
    assert len(ids(run, journal, "--bank", tmp_path / "moved")) == 1


def test_another_bank_is_refused(run, journal, tmp_path):
    save_bank(make_bank(seed=5), tmp_path / "other")
    before = journal.read_bytes()
    for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1), ("status", journal)):
        outcome = run("session", *arguments, "--bank", tmp_path / "other")
        assert (outcome.code, outcome.out) == (1, "")
        assert "the bank it was started with" in outcome.err
    assert journal.read_bytes() == before


def test_a_torn_journal_goes_on_and_says_so(run, journal):
    first = ids(run, journal)
    whole = journal.read_bytes()
    run("session", "tell", journal, first[0], "--response", 1)
    journal.write_bytes(journal.read_bytes()[:-9])
    outcome = run("session", "ask", journal, "--format", "ids")
    assert (outcome.code, outcome.out.splitlines()) == (0, first)
    assert "Warning: " in outcome.err
    assert "torn" in outcome.err
    run("session", "tell", journal, first[0], "--response", 1)
    assert journal.read_bytes().startswith(whole)
    assert [event["event"] for event in read_journal(journal).events] == ["asked", "told"]


def test_a_damaged_journal_exits_4(run, journal):
    ids(run, journal)
    journal.write_bytes(journal.read_bytes().replace(b'"asked"', b'"ASKED"'))
    for arguments in (("ask", journal), ("tell", journal, "math/0", "--response", 1), ("status", journal)):
        outcome = run("session", *arguments)
        assert (outcome.code, outcome.out) == (4, "")
        assert "line 2" in outcome.err


def test_other_files_are_refused(run, bank_folder, tmp_path):
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "empty").write_text("")
    for name in ("notes.txt", "empty"):
        outcome = run("session", "ask", tmp_path / name)
        assert outcome.code == 1
        assert "not the journal of a session" in outcome.err
    assert run("session", "ask", tmp_path / "absent").code == 2


def test_odd_ids_pass_through_and_drive_no_terminal(run, tmp_path, stdin):
    bank = make_bank(n_items=12)
    odd = ["-", "--help", "a b", "[red]x", "$(rm -rf /)", "../../etc", "日本", "q\x1b[31m", "'\"", "*", "%s", "\u2028"]
    bank.responses.items.replace_column(0, pl.Series("item_id", odd))
    save_bank(bank, tmp_path / "bank")
    journal = tmp_path / "j"
    run("session", "start", tmp_path / "bank", "-o", journal, "--model-id", "\x1b[31mred [b]", *FAST)
    asked = run("session", "ask", journal, "-n", 12, "--format", "ids").out.split("\n")[:-1]
    assert sorted(asked) == sorted(odd)
    for item in asked[:6]:
        if item != "-":
            assert run("session", "tell", journal, "--response", 1, "--", item).code == 0
    rest = ["-", *asked[6:]] if "-" in asked[:6] else asked[6:]
    stdin("\n".join(json.dumps({"item_id": item, "response": 0}) for item in rest))
    assert run("session", "tell", journal, "-").code == 0
    for arguments in (("status", journal), ("export", journal)):
        outcome = run("session", *arguments)
        assert outcome.code == 0
        assert "\x1b" not in outcome.out + outcome.err
    assert len(read_responses_of(run, journal)) == 12


def read_responses_of(run, journal):
    return json.loads(run("session", "export", journal, "--format", "json").out)


def test_an_id_with_a_line_break_does_not_stand_on_a_line(run, tmp_path):
    bank = make_bank(n_items=3)
    bank.responses.items.replace_column(0, pl.Series("item_id", ["a\nb", "c", "d"]))
    save_bank(bank, tmp_path / "bank")
    run("session", "start", tmp_path / "bank", "-o", tmp_path / "j", "--model-id", "m", *FAST)
    outcome = run("session", "ask", tmp_path / "j", "-n", 3, "--format", "ids")
    assert (outcome.code, outcome.out) == (1, "")
    assert "--format json" in outcome.err
    content = json.loads(run("session", "ask", tmp_path / "j", "-n", 3).out)
    assert sorted(item["item_id"] for item in content["items"]) == ["a\nb", "c", "d"]


def test_help_loads_neither_numpy_nor_polars():
    script = (
        "import sys; from itembank.cli.session import command; print(sorted({'numpy', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(
    "options",
    [
        (*LIMIT, "--half-width", 0.05),
        ("--criterion", "random", "--seed", 11, "--max-items", 9, *FAST),
        (
            "--criterion",
            "d-optimal",
            "--cost",
            "output_tokens",
            "--max-cost",
            "output_tokens=600",
            "--n-start",
            2,
            *FAST,
        ),
    ],
)
def test_a_loop_over_a_recorded_model_ends_with_the_numbers_of_replay(run, bank_folder, tmp_path, batch, options):
    recorded = make_bank(n_items=60, with_extras=True, n_models=3, seed=8).responses.take(models=np.array([1]))
    write_responses(recorded, tmp_path / "recorded.parquet")
    replayed = run("replay", bank_folder, tmp_path / "recorded.parquet", *options, "--batch", batch, "--format", "json")
    journal = tmp_path / "j"
    start = run("session", "start", bank_folder, "-o", journal, "--model-id", recorded.model_ids[0], *options)
    assert start.code == 0
    column = {item: place for place, item in enumerate(recorded.item_ids)}
    while True:
        asked = run("session", "ask", journal, "-n", batch, "--new", "--format", "ids")
        if asked.code or not asked.out:
            break
        for item in asked.out.splitlines():
            response = recorded.responses[0, column[item]]
            if np.isnan(response):
                run("session", "tell", journal, item, "--failed")
                continue
            trials = int(recorded.n_trials[0, column[item]])
            cost = f"output_tokens={recorded.costs['output_tokens'][0, column[item]]}"
            told = ("--correct", round(response * trials), "--trials", trials, "--cost", cost)
            assert run("session", "tell", journal, item, *told).code == 0
    assert asked.code == replayed.code
    status = json.loads(run("session", "status", journal, "--format", "json").out)
    rows = json.loads(replayed.out)
    shared = ("target", "estimate", "low", "high", "standard_error", "n_items", "n_total")
    assert [{name: row[name] for name in shared} for row in status["scores"]] == [
        {name: row[name] for name in shared} for row in rows
    ]
    assert {row["reason_stopped"] for row in rows} == {status["reason_stopped"]}


def test_a_full_disk_loses_nothing_and_the_same_command_works_once_there_is_room(
    run, bank_folder, journal, tmp_path, stdin, monkeypatch
):
    def refuse(handle, content, offset):
        raise OSError(errno.ENOSPC, "No space left on device")

    asked = ids(run, journal, "-n", 3)
    before = journal.read_bytes()
    answers = "\n".join(json.dumps({"item_id": item, "response": 1}) for item in asked)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        for arguments in (
            ("ask", journal, "--new"),
            ("tell", journal, asked[0], "--response", 1),
            ("tell", journal, "-"),
        ):
            stdin(answers)
            outcome = run("session", *arguments)
            assert (outcome.code, outcome.out, journal.read_bytes()) == (1, "", before)
            assert "No space left on device" in outcome.err
        outcome = run("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *FAST)
        assert outcome.code == 1
        assert not (tmp_path / "j").exists()
    stdin(answers)
    assert json.loads(run("session", "tell", journal, "-").out)["told"] == asked
