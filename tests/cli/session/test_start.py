"""`itembank session start`: options become settings, and what does not fit leaves no journal."""

import itembank as ib
from itembank.bank.bank_files import save_bank
from itembank.publishing import without_responses
from itembank.selection.criteria import DOptimality, VOptimality
from tests.bank.banks import make_bank
from tests.cli.session.loops import FAST, ids, session_file, settings_of

WHOLE = """
criterion = "d-optimal"
target = "law"
n_start = 3
seed = 4
budget = {n_items = 3, costs = {output_tokens = 9}}
constraints = {at_least = {math = 2, law = 1}, at_most = 15, excluded = ["math/0", "code/1"], randomesque = 2}
[stopping]
ability_error = 0.2
half_width = 0.5
min_items = 4
level = 0.8
decision = {target = "math", model = "org/model-3", confidence = 0.9}
"""


def test_a_file_and_options_become_settings_and_options_win(run, bank_folder, tmp_path):
    options = (
        *session_file(tmp_path, WHOLE),
        *("--cost", "output_tokens", "--target", "math", "--seed", 5),
        *("--max-items", 40, "--max-cost", "output_tokens=5000"),
        *("--half-width", 0.05, "--half-width", "overall=0.1", "--threshold", 0.6),
    )
    run.ok("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options)
    assert settings_of(tmp_path / "j") == ib.SessionSpec(
        criterion=DOptimality(per_cost=True),
        cost=ib.CostUnit("output_tokens"),
        target="math",
        budget=ib.Budget(40, {"output_tokens": 5000.0}),
        stopping=ib.Stopping(0.2, {"math": 0.05, "overall": 0.1}, ib.Decision("math", 0.6, None, 0.9), 0.8, 4),
        constraints=ib.Constraints({"math": 2, "law": 1}, 15, ("math/0", "code/1"), 2),
        n_start=3,
        seed=5,
        interval="model-based",
        errors="missing",  # as in the bank, which lost none
    )


REGRESSION = """
criterion = {name = "v-optimal"}
cost = {name = "seconds", input_weight = 0.25}
constraints = {at_least = 1}
"""


def test_a_criterion_with_its_choices_is_divided_by_the_cost_that_is_asked_for(run, bank_folder, tmp_path):
    options = (
        *session_file(tmp_path, REGRESSION),
        *("--cost", "tokens", "--max-cost", "tokens=900", "--better-than", "org/model-3"),
    )
    run.ok("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options)
    settings = settings_of(tmp_path / "j")
    assert (settings.criterion, settings.cost) == (VOptimality(per_cost=True), ib.CostUnit("tokens", 0.25))
    assert settings.budget == ib.Budget(costs={"tokens": 900.0})
    assert settings.stopping.decision == ib.Decision("overall", model="org/model-3")
    assert settings.constraints == ib.Constraints(at_least=1)


def test_a_scenario_that_is_predicted_is_the_target_and_never_asked(run, bank_folder, tmp_path):
    (tmp_path / "rare.toml").write_text("constraints = {at_most = {math = 4}}\n")
    options = ("--session", tmp_path / "rare.toml", "--max-items", 6, "--predict", "law", "--half-width", 0.2)
    outcome = run.ok("session", "start", bank_folder, "-o", tmp_path / "j", "--model-id", "m", *options)
    assert "'law' is never asked: cross-validated mean error" in outcome.err
    settings = settings_of(tmp_path / "j")
    assert (settings.target, settings.stopping.half_widths) == ("law", {"law": 0.2})
    assert settings.constraints.at_most == {"math": 4, "law": 0}
    asked = ids(run, tmp_path / "j", "-n", 6)
    assert len(asked) == 6
    assert not any(item.startswith("law/") for item in asked)


def test_calibrated_intervals_are_found_when_the_session_starts(run, bank_folder, tmp_path, monkeypatch):
    journal = tmp_path / "j"
    run.ok("session", "start", bank_folder, "-o", journal, "--model-id", "m", "--half-width", 0.1)
    monkeypatch.setattr("itembank.sessions.preparation._sessions", None)  # what was found then is kept
    run("session", "tell", journal, "math/0", "--response", 1)
    assert len(ids(run, journal)) == 1
    rows = run.json("session", "status", journal)["scores"]
    assert {row["interval"] for row in rows} == {"calibrated"}


def test_a_session_is_never_started_over(run, bank_folder, journal):
    before = journal.read_bytes()
    outcome = run("session", "start", bank_folder, "-o", journal, "--model-id", "other")
    assert (outcome.code, journal.read_bytes()) == (1, before)
    assert "exists already" in outcome.err


def test_a_bank_that_was_published_with_its_items_asks_these(run, tmp_path, few_folds):
    bank = make_bank(n_models=12)
    chosen = ib.select(bank, 9, method="random", rng=0)
    save_bank(without_responses(bank, selections=[chosen]), tmp_path / "tiny")
    words = ("session", "start", tmp_path / "tiny", "--model-id", "new", "-o")
    done = run(*words, tmp_path / "own.jsonl", *FAST)
    assert "Only items that the bank was published with are asked." in done.err
    asked = run("session", "ask", tmp_path / "own.jsonl", "-n", 30, "--format", "ids")
    assert set(asked.out.split()) == set(chosen.item_ids)
    none_out = session_file(tmp_path, "constraints.excluded = []")
    run.ok(*words, tmp_path / "all.jsonl", *none_out)
    asked = run("session", "ask", tmp_path / "all.jsonl", "-n", 30, "--format", "ids")
    assert set(asked.out.split()) == set(bank.item_ids)


def test_it_says_what_is_asked_and_how_good_that_is(run, bank_folder, tmp_path):
    start = ("session", "start", bank_folder, "--model-id", "m")
    said = run.ok(*start, "-o", tmp_path / "1.jsonl", "--max-items", 9).err
    assert "The session of m asks at most 9 of 60 items; these are good to about ±" in said
    assert "points for models like the 12 past ones. It is in" in said
    said = run.ok(*start, "-o", tmp_path / "2.jsonl", *FAST, "--half-width", 0.05, "--half-width", "law=0.1").err
    assert "The session of m asks up to 60 items until overall is ±5.0 points and law is ±10.0 points. It is in" in said
    said = run.ok(*start, "-o", tmp_path / "4.jsonl", *FAST, "--max-items", 99).err
    assert "The session of m asks up to 60 items" in said
    costs = ("--max-cost", "output_tokens=9000")
    said = run.ok(*start, "-o", tmp_path / "3.jsonl", *FAST, "--threshold", 0.5, *costs).err
    assert "asks up to 60 items for at most 9,000 output_tokens until the question is settled" in said
