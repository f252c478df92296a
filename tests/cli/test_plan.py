import json

import pytest

from itembank.bank.bank_files import save_bank
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")

QUICK = ("--method", "weighted", "--selector", "random")


@pytest.fixture
def bank_folder(tmp_path):
    """A bank with models enough to leave some out."""
    save_bank(make_bank(n_models=20), tmp_path / "bank")
    return tmp_path / "bank"


def test_the_answer_and_the_table(run, bank_folder):
    outcome = run("plan", bank_folder, "--half-width", 0.2, *QUICK, "--format", "json")
    assert outcome.code == 0, outcome.err
    made = json.loads(outcome.out)
    assert made["half_width"] <= 0.2
    assert (made["goal"], made["goal_value"], made["n_total"]) == ("half_width", 0.2, 30)
    assert {row["n_items"] for row in made["sizes"]} >= {10, 30}
    assert made["sizes"][0]["detectable_difference"] > made["sizes"][-1]["detectable_difference"]
    assert f"{made['n_items']} of 30 items" in outcome.err


def test_without_a_goal_only_the_table(run, bank_folder):
    outcome = run("plan", bank_folder, *QUICK, "--format", "csv")
    assert outcome.out.splitlines()[0] == "n_items,half_width,detectable_difference,mean_absolute_error"
    assert run("plan", bank_folder, *QUICK).out.count("half_width") >= 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--half-width", 2), "half_width"),
        (("--half-width", 0.1, "--difference", 0.1), "one goal"),
        (("--level", 0), "level"),
        (("--max-items", 1), "max_items"),
    ],
)
def test_what_cannot_be_planned_is_a_usage_error(run, bank_folder, words, text):
    outcome = run("plan", bank_folder, *words, *QUICK)
    assert (outcome.code, outcome.out) == (2, "")
    assert text in outcome.err


def test_a_goal_that_only_all_items_reach_is_no_guess(run, bank_folder):
    outcome = run("plan", bank_folder, "--half-width", 1e-6, *QUICK, "--selector", "v-optimal", "--format", "json")
    assert outcome.code == 0, outcome.err
    made = json.loads(outcome.out)
    assert made["n_items"] == 30
    assert made["message"] == "Only all 30 items are enough for a half-width of 1e-06 on 'overall'."


@pytest.mark.parametrize("option", ["--selector", "--method"])
def test_another_method_is_refused_with_those_there_are(run, bank_folder, option):
    outcome = run("plan", bank_folder, option, "nothing")
    assert outcome.code == 2
    assert "'nothing' is not one of" in outcome.err
    assert "'auto'" in outcome.err
