"""`itembank session start`: options become settings, and what does not fit leaves no journal."""

import json
import subprocess
import sys

import pytest

from itembank.bank.bank_files import save_bank
from itembank.bank.costs import CostUnit
from itembank.planning.select import select
from itembank.publishing import without_responses
from itembank.selection.constraints import Constraints
from itembank.selection.criteria import DOptimality, VOptimality
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.sessions.prior_specs import GroupPrior, RegressionPrior
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank
from tests.cli.session.loops import FAST, LIMIT, ids, settings_of


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
    assert settings_of(tmp_path / "j") == SessionSpec(
        criterion=DOptimality(per_cost=True),
        cost=CostUnit("output_tokens"),
        target="math",
        budget=Budget(40, {"output_tokens": 5000.0}),
        stopping=Stopping(0.2, {"math": 0.05, "overall": 0.1}, Decision("math", 0.6, None, 0.9), 0.8, 4),
        constraints=Constraints({"math": 2, "law": 1}, 15, ("math/0", "code/1"), 2),
        prior=GroupPrior("size", "3"),
        n_start=3,
        seed=5,
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
    monkeypatch.setattr("itembank.sessions.past_sessions._sessions", None)  # what was found then is kept
    run("session", "tell", journal, "math/0", "--response", 1)
    assert len(ids(run, journal)) == 1
    rows = json.loads(run("session", "status", journal, "--format", "json").out)["scores"]
    assert {row["interval"] for row in rows} == {"calibrated"}


def test_a_session_is_never_started_over(run, bank_folder, journal):
    before = journal.read_bytes()
    outcome = run("session", "start", bank_folder, "-o", journal, "--model-id", "other")
    assert (outcome.code, journal.read_bytes()) == (1, before)
    assert "there already" in outcome.err


def test_help_loads_neither_numpy_nor_polars():
    script = (
        "import sys; from itembank.cli.session import command; print(sorted({'numpy', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_bank_that_was_published_with_its_items_asks_these(run, tmp_path, few_folds):
    bank = make_bank(n_models=12)
    chosen = select(bank, 9, method="random", rng=0)
    save_bank(without_responses(bank, selection=chosen), tmp_path / "tiny")
    words = ("session", "start", tmp_path / "tiny", "--model-id", "new", "--interval", "model-based", "-o")
    done = run(*words, tmp_path / "own.jsonl")
    assert "Asked are items among the 9 that the bank was published with." in done.err
    asked = run("session", "ask", tmp_path / "own.jsonl", "-n", 30, "--format", "ids")
    assert set(asked.out.split()) == set(chosen.item_ids)
    (tmp_path / "none.txt").write_text("")
    assert run(*words, tmp_path / "all.jsonl", "--exclude", tmp_path / "none.txt").code == 0
    asked = run("session", "ask", tmp_path / "all.jsonl", "-n", 30, "--format", "ids")
    assert set(asked.out.split()) == set(bank.item_ids)
