import pytest

from itembank.bank.bank_files import save_bank
from itembank.planning.plan import plan
from tests.bank.banks import make_bank


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=20)


@pytest.fixture
def bank_folder(bank, tmp_path):
    save_bank(bank, tmp_path / "bank")
    return tmp_path / "bank"


def test_the_answer_and_the_table(run, bank, bank_folder):
    made = run.json("plan", bank_folder, "--half-width", 0.2)
    assert made["half_width"] <= 0.2
    assert (made["goal"], made["goal_value"], made["n_total"]) == ("half_width", 0.2, 30)
    assert [row["n_items"] for row in made["sizes"]] == sorted({10, 20, 30, made["n_items"]})
    assert made["message"] == plan(bank, half_width=0.2).message
    sentence = run("plan", bank_folder, "--half-width", 0.2).out.splitlines()[0]
    width = f"±{100 * made['half_width']:.1f} points"
    assert (
        sentence
        == f"{made['n_items']} of 30 items, drawn at random, give an interval of {width} for models like past ones"
    )


def test_without_a_goal_only_the_table(run, bank_folder):
    assert run("plan", bank_folder).out.startswith("20 of 30 items, drawn at random, give an interval of ±")


def test_two_models_are_told_apart(run, bank_folder):
    first = run("plan", bank_folder, "--difference", 0.3, "--power", 0.9).out.splitlines()[0]
    assert "tell apart models that differ by" in first


def test_a_goal_out_of_reach_is_said(run, bank_folder):
    outcome = run.ok("plan", bank_folder, "--half-width", 1e-6, "--max-items", 12)
    assert outcome.out.startswith("12 items are too few for a half-width of 1e-06")


def test_a_scenario_says_that_intervals_are_at_most_so_wide(run, bank_folder):
    outcome = run.ok("plan", bank_folder, "--target", "math")
    assert "mostly narrower" in outcome.err
    assert "an interval of math of ±" in outcome.out


def test_a_difference_that_no_scores_have_is_none(run, bank_folder):
    said = run.ok("plan", bank_folder, "--difference", 0.01, "--max-items", 2)
    assert said.out.startswith(
        "2 items are too few for telling apart models that differ by 0.01 (1 points) on 'overall'"
    )
    assert "they show no difference" in said.out
    assert said.out.split()[-1] == "none"
    assert run.json("plan", bank_folder, "--max-items", 2)["sizes"][0]["detectable_difference"] == 1.0
