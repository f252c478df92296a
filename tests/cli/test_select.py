"""`itembank select` and `itembank plan`."""

import dataclasses

import polars as pl
import pytest

import itembank as ib
from itembank.cli import select as select_command
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS
from tests.bank.banks import make_bank
from tests.cli.conftest import holds, offered_methods, spec_file
from tests.estimation.simulated import new_models

pytestmark = pytest.mark.usefixtures("few_folds")


def test_every_method_of_the_library_is_offered():
    assert offered_methods(select_command.select_command) == ("auto", *METHODS.builtin_names)


def test_ids_are_printed_to_the_letter(run, tmp_path):
    bank = make_bank()
    renamed = bank.responses.items.with_columns(item_id=pl.lit("=") + pl.col("item_id"))
    dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=renamed)).save(tmp_path / "bank")
    printed = run("select", tmp_path / "bank", "-n", 6, "--method", "random", "--format", "csv").out
    assert all(line.startswith("=") for line in printed.splitlines()[1:])
    folder = odd_folder(tmp_path, "\x1b[31mred\x1b[0m", "-rf", " lead", "line\u2028separator")
    found = run("select", folder, "-n", 30, "--method", "random", "--ids", "list").out
    assert set(found.removesuffix("\n").split("\n")) == set(ib.load_bank(folder).item_ids)
    (tmp_path / "exclude.txt").write_text(found.replace("-rf\n", ""), encoding="utf-8")
    spec = spec_file(tmp_path, 'criterion = "random"\nat_least = 0')
    words = ("-n", 1, "--method", "optimal-design", "--ids", "list", "--exclude", tmp_path / "exclude.txt")
    rest = run("select", folder, *words, *spec)
    assert rest.out == "-rf\n"


@pytest.mark.parametrize(
    "method", [method for method in METHODS.builtin_names if method not in {"v-optimal", "optimal-design"}]
)
def test_writes_a_selection_spread_over_the_scenarios(run, bank_folder, tmp_path, method):
    outcome = run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json", "--method", method, "--seed", 5)
    assert (outcome.code, outcome.out) == (0, "")
    selection = ib.Selection.load(tmp_path / "s.json")
    assert selection.n_items == 12
    assert [selection.scenarios.count(scenario) for scenario in ("math", "code", "law")] == [4, 4, 4]
    assert ((selection.method, selection.seed), selection.bank) == ((method, 5), ib.load_bank(bank_folder).bank_id)


def test_v_optimal_items_are_spread_as_the_scores_want_and_it_says_why(run, bank_folder, tmp_path):
    outcome = run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json", "--method", "v-optimal")
    assert (outcome.code, outcome.out) == (0, "")
    selection = ib.Selection.load(tmp_path / "s.json")
    assert (selection.n_items, set(selection.scenarios)) == (12, {"math", "code", "law"})
    outcome = run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json")
    selection = ib.Selection.load(tmp_path / "s.json")
    assert selection.explanation.startswith("drawn. 95 % interval of the overall score: about ±")
    assert selection.explanation.endswith("points, valid if it is like the 12 past ones (--method v-optimal).")
    assert f"Chose 12 of 30 items (drawn). {selection.explanation.removeprefix('drawn. ')}" in outcome.err


def test_ids_and_json_are_of_the_bank_and_scenarios_can_count_each(run, bank_folder, tmp_path):
    run("select", bank_folder, "-n", 5, "--per-scenario", "-o", tmp_path / "s.json")
    assert ib.Selection.load(tmp_path / "s.json").n_items == 15
    ids = run("select", bank_folder, "-n", 9, "--ids", "list").out.split()
    assert len(ids) == len(set(ids) & set(ib.load_bank(bank_folder).item_ids)) == 9
    content = run.json("select", bank_folder, "-n", 6, "--method", "anchor-irt")
    assert (len(content["items"]), content["method"], content["seed"]) == (6, "anchor-irt", 0)
    assert set(content["items"][0]) == {"item_id", "scenario", "weight"}
    ids = ib.load_bank(bank_folder).item_ids
    (tmp_path / "exclude.txt").write_text("\n".join(ids[:12]) + "\r\n\n")
    chosen = run("select", bank_folder, "-n", 18, "--ids", "list", "--exclude", tmp_path / "exclude.txt").out.split()
    assert sorted(chosen) == sorted(ids[12:])


def odd_folder(tmp_path, *ids):
    """A bank with these ids for its first items."""
    bank = make_bank()
    items = bank.responses.items.with_columns(item_id=pl.Series([*ids, *bank.item_ids[len(ids) :]]))
    dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=items)).save(tmp_path / "odd")
    return tmp_path / "odd"


def test_ids_that_do_not_fit_on_a_line_leave_nothing_behind(run, tmp_path):
    folder = odd_folder(tmp_path, "new\nline")
    words = ("-n", 30, "--method", "random", "--ids", "list", "-o", tmp_path / "s.json")
    run.fails(1, "line break", "select", folder, *words)
    assert not (tmp_path / "s.json").exists()


@pytest.mark.parametrize("kind", ["ids.txt", "ids.csv", "ids.parquet", "chosen.json"])
def test_items_that_must_come_are_chosen_whatever_file_names_them(run, bank_folder, tmp_path, kind):
    ids = ib.load_bank(bank_folder).item_ids[4:12]
    table = pl.DataFrame({"item_id": ids, "why": "sentinel"})
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    table.write_csv(tmp_path / "ids.csv")
    table.write_parquet(tmp_path / "ids.parquet")
    select(ib.load_bank(bank_folder), 8, method="random", rng=2, included=ids).save(tmp_path / "chosen.json")
    outcome = run("select", bank_folder, "-n", 12, "--ids", "list", "--must-include", tmp_path / kind)
    chosen = outcome.out.split()
    assert len(chosen) == 12, outcome.err
    assert set(ids) <= set(chosen)


def one_model(bank_folder, path):
    answers = new_models(ib.load_bank(bank_folder), 1)
    rows = answers.items.select("item_id", "scenario", model_id=pl.lit("new"), response=pl.Series(answers.responses[0]))
    rows.write_csv(path)
    return path


def test_stages_from_the_first_selection_to_the_estimate(run, bank_folder, tmp_path):
    first, second = tmp_path / "stage1.json", tmp_path / "stage2.json"
    results = one_model(bank_folder, tmp_path / "new.csv")
    said = run.ok("select", bank_folder, "-n", 15, "--stages", 2, "-o", first).err.replace("\n", " ")
    assert (
        f"for the 10 items of the next stage: itembank select {bank_folder} --after RESULTS --selection {first}" in said
    )
    outcome = run.ok("select", bank_folder, "--after", results, "--selection", first, "-o", second)
    assert "items: v-optimal at the ability of new: stage 2 of 2." in outcome.err
    chosen = ib.Selection.load(second)
    assert (chosen.n_items, chosen.whole.n_items) == (10, 15)
    ids = run("select", bank_folder, "--after", results, "--selection", first, "--ids", "list").out.split()
    assert sorted(ids) == sorted(chosen.item_ids)  # what is left to run, and nothing else
    outcome = run.ok("estimate", bank_folder, results, "--selection", second, "--format", "json")
    assert outcome.json["rows"][-1]["n_items"] == 15


def test_a_scenario_is_predicted_without_being_asked(run, bank_folder, tmp_path):
    outcome = run.ok("select", bank_folder, "-n", 9, "-o", tmp_path / "s.json", "--predict", "law", "--format", "json")
    content = outcome.json
    assert {row["scenario"] for row in content["items"]} == {"math", "code"}
    (record,) = content["never_asked"]
    assert record["target"] == "law"
    assert f"'law' is never asked: cross-validated mean error {100.0 * record['error']:.1f} points" in outcome.err
    ib.write_responses(new_models(ib.load_bank(bank_folder), n_models=1), tmp_path / "new.parquet")
    outcome = run("estimate", bank_folder, tmp_path / "new.parquet", "--selection", tmp_path / "s.json")
    assert "'law': no item was answered, and the score is predicted from the other answers." in outcome.err


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_fewer_items_than_scenarios_say_what_is_left_out_and_how_many_are_enough(run, bank_folder):
    said = run.ok("select", bank_folder, "-n", 2).err
    holds(said, "None of the 2 items is of", "For an item of each of the 3: -n 3.")
    rows = run.json("select", bank_folder, "-n", 3)["items"]
    assert len({row["scenario"] for row in rows}) == 3
    assert "None of the" not in run.ok("select", bank_folder, "-n", 3).err
    refused = run("select", bank_folder, "-n", 2, "--method", "random").err
    assert "To leave scenarios out: --method auto, v-optimal or optimal-design." in refused


@pytest.fixture(scope="module")
def planned():
    return make_bank(n_models=20)


@pytest.fixture
def planned_folder(planned, tmp_path):
    planned.save(tmp_path / "bank")
    return tmp_path / "bank"


def test_the_answer_and_the_table(run, planned, planned_folder):
    made = run.json("plan", planned_folder, "--half-width", 0.2)
    assert made["half_width"] <= 0.2
    assert (made["goal"], made["goal_value"], made["n_total"]) == ("half_width", 0.2, 30)
    assert [row["n_items"] for row in made["sizes"]] == sorted({10, 20, 30, made["n_items"]})
    assert made["message"] == ib.plan(planned, half_width=0.2).message
    sentence = run("plan", planned_folder, "--half-width", 0.2).out.splitlines()[0]
    width = f"±{100 * made['half_width']:.1f} points"
    begun = f"{made['n_items']} of 30 items, drawn at random, give an interval of {width}"
    assert sentence == f"{begun} for models like past ones"


def test_goals_are_reached_or_said_to_be_out_of_reach(run, planned_folder):
    assert run("plan", planned_folder).out.startswith("20 of 30 items, drawn at random, give an interval of ±")
    first = run("plan", planned_folder, "--difference", 0.3, "--power", 0.9).out.splitlines()[0]
    assert "tell apart models that differ by" in first
    outcome = run.ok("plan", planned_folder, "--half-width", 1e-6, "--max-items", 12)
    assert outcome.out.startswith("12 items are too few for a half-width of 1e-06")
    outcome = run.ok("plan", planned_folder, "--target", "math")
    assert "mostly narrower" in outcome.err
    assert "an interval of math of ±" in outcome.out
    said = run.ok("plan", planned_folder, "--difference", 0.01, "--max-items", 2)
    few = "2 items are too few for telling apart models that differ by 0.01 (1 points) on 'overall'"
    assert said.out.startswith(few)
    assert "they show no difference" in said.out
    assert said.out.split()[-1] == "none"
    assert run.json("plan", planned_folder, "--max-items", 2)["sizes"][0]["detectable_difference"] == 1.0
