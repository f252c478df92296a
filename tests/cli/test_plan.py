import numpy as np
import pytest

from itembank.bank.bank_files import save_bank
from itembank.selection.criteria import DOptimality
from itembank.sessions import plan_sessions
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")

QUICK = ("--method", "weighted", "--selector", "random")


@pytest.fixture
def bank_folder(tmp_path):
    """A bank with models enough to leave some out."""
    save_bank(make_bank(n_models=20), tmp_path / "bank")
    return tmp_path / "bank"


def test_the_answer_and_the_table(run, bank_folder):
    outcome = run.ok("plan", bank_folder, "--half-width", 0.2, *QUICK, "--format", "json")
    made = outcome.json
    assert made["half_width"] <= 0.2
    assert (made["goal"], made["goal_value"], made["n_total"]) == ("half_width", 0.2, 30)
    assert {row["n_items"] for row in made["sizes"]} >= {10, 30}
    assert made["sizes"][0]["detectable_difference"] > made["sizes"][-1]["detectable_difference"]
    sentence = run("plan", bank_folder, "--half-width", 0.2, *QUICK).out.splitlines()[0]
    width = f"±{100 * made['measured']:.1f} points"
    assert sentence == f"{made['n_items']} of 30 items give an interval of {width} (cross-validated on 20 past models)"


def test_without_a_goal_only_the_table(run, bank_folder):
    assert run("plan", bank_folder, *QUICK).out.startswith("20 of 30 items give an interval of ±")


def test_a_goal_that_only_all_items_reach_is_no_guess(run, bank_folder):
    outcome = run.ok("plan", bank_folder, "--half-width", 1e-6, *QUICK, "--selector", "v-optimal", "--format", "json")
    made = outcome.json
    assert made["n_items"] == 30
    assert made["message"] == "Only all 30 items are enough for a half-width of 1e-06 (0.00 points) on 'overall'."


def of_all_targets(errors):
    return np.tile(errors[:, None], 9)


@pytest.fixture
def tried(monkeypatch):
    """Ways of asking whose errors are known."""
    once = np.full(20, 0.05)
    errors = {"at once": once, "one by one": once - 0.02 + np.tile([0.001, -0.001], 10)}
    ways = tuple(
        (name, lambda bank, spec, progress, error=error: of_all_targets(error), f"{name}: {{n_items}}")
        for name, error in errors.items()
    )
    monkeypatch.setattr(plan_sessions, "DESIGNS", ways)


@pytest.mark.usefixtures("tried")
def test_the_table_of_ways_has_errors_in_points_and_says_what_to_take(run, bank_folder):
    outcome = run.ok("plan", bank_folder, "--session", "-n", 9)
    assert outcome.out.splitlines()[0] == "Ask one by one: 2.00 ± 0.02 points closer than at once."
    rows = [line.split() for line in outcome.out.splitlines() if "±" in line and "closer" not in line]
    assert [row[:5] for row in rows] == [["at", "once", "5.00", "±", "0.00"], ["one", "by", "one", "3.00", "±"]]
    assert "this" in rows[1]
    assert "this" not in rows[0]


@pytest.mark.usefixtures("tried")
def test_json_of_ways_has_errors_of_scores_from_0_to_1(run, bank_folder):
    found = run("plan", bank_folder, "--session", "-n", 9, "--format", "json").json
    assert (found["taken"], found["command"], found["n_items"]) == ("one by one", "one by one: 9", 9)
    assert [row["mean_absolute_error"] for row in found["designs"]] == pytest.approx([0.05, 0.03])
    assert found["designs"][1]["gain"] == pytest.approx(0.02)


def test_the_session_is_that_of_the_file(run, bank_folder, tmp_path, monkeypatch):
    (tmp_path / "session.toml").write_text('criterion = "d-optimal"')
    asked = []
    keep = ("one by one", lambda bank, spec, progress: asked.append(spec) or of_all_targets(np.full(20, 0.05)), "")
    monkeypatch.setattr(plan_sessions, "DESIGNS", (keep, keep))
    run.ok("plan", bank_folder, "--session", tmp_path / "session.toml", "-n", 9)
    assert asked[0].criterion == DOptimality()
