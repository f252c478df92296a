import dataclasses

import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.selections import Selection
from itembank.cli import select as select_command
from itembank.responses.response_files import write_responses
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS
from tests.bank.banks import make_bank
from tests.cli.conftest import offered_methods, spec_file
from tests.estimation.simulated import new_models

pytestmark = pytest.mark.usefixtures("few_folds")


def test_every_method_of_the_library_is_offered():
    assert offered_methods(select_command.select_command) == ("auto", *METHODS.builtin_names)


def test_chosen_items_are_printed_to_the_letter_for_programs(run, tmp_path):
    bank = make_bank()
    renamed = bank.responses.items.with_columns(item_id=pl.lit("=") + pl.col("item_id"))
    save_bank(
        dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=renamed)), tmp_path / "bank"
    )
    printed = run("select", tmp_path / "bank", "-n", 6, "--method", "random", "--format", "csv").out
    assert all(line.startswith("=") for line in printed.splitlines()[1:])


@pytest.mark.parametrize(
    "method", [method for method in METHODS.builtin_names if method not in {"v-optimal", "optimal-design"}]
)
def test_writes_a_selection_spread_over_the_scenarios(run, bank_folder, tmp_path, method):
    outcome = run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json", "--method", method, "--seed", 5)
    assert (outcome.code, outcome.out) == (0, "")
    selection = Selection.load(tmp_path / "s.json")
    assert selection.n_items == 12
    assert {scenario: selection.scenarios.count(scenario) for scenario in ("math", "code", "law")} == {
        "math": 4,
        "code": 4,
        "law": 4,
    }
    assert (selection.method, selection.seed) == (method, 5)
    assert selection.bank == load_bank(bank_folder).bank_id


def test_v_optimal_items_are_spread_as_the_scores_want(run, bank_folder, tmp_path):
    outcome = run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json", "--method", "v-optimal")
    assert (outcome.code, outcome.out) == (0, "")
    selection = Selection.load(tmp_path / "s.json")
    assert (selection.n_items, set(selection.scenarios)) == (12, {"math", "code", "law"})


def test_says_what_it_chose_and_why(run, bank_folder, tmp_path):
    outcome = run("select", bank_folder, "-n", 12, "-o", tmp_path / "s.json")
    selection = Selection.load(tmp_path / "s.json")
    assert selection.explanation.startswith("drawn. 95 % interval of the overall score: about ±")
    assert selection.explanation.endswith("points, valid if it is like the 12 past ones (--method v-optimal).")
    assert f"Chose 12 of 30 items (drawn). {selection.explanation.removeprefix('drawn. ')}" in outcome.err


def test_per_scenario_counts_for_each(run, bank_folder, tmp_path):
    run("select", bank_folder, "-n", 5, "--per-scenario", "-o", tmp_path / "s.json")
    assert Selection.load(tmp_path / "s.json").n_items == 15


def test_emits_plain_ids(run, bank_folder):
    ids = run("select", bank_folder, "-n", 9, "--ids", "list").out.split()
    assert len(ids) == len(set(ids) & set(load_bank(bank_folder).item_ids)) == 9


def odd_folder(tmp_path, *ids):
    """A bank with these ids for its first items."""
    bank = make_bank()
    items = bank.responses.items.with_columns(item_id=pl.Series([*ids, *bank.item_ids[len(ids) :]]))
    save_bank(dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=items)), tmp_path / "odd")
    return tmp_path / "odd"


def test_emits_ids_to_the_letter(run, tmp_path):
    folder = odd_folder(tmp_path, "\x1b[31mred\x1b[0m", "-rf", " lead", "line\u2028separator")
    found = run("select", folder, "-n", 30, "--method", "random", "--ids", "list").out
    assert set(found.removesuffix("\n").split("\n")) == set(load_bank(folder).item_ids)
    (tmp_path / "exclude.txt").write_text(found.replace("-rf\n", ""), encoding="utf-8")
    spec = spec_file(tmp_path, 'criterion = "random"\nat_least = 0')
    words = ("-n", 1, "--method", "optimal-design", "--ids", "list", "--exclude", tmp_path / "exclude.txt")
    rest = run("select", folder, *words, *spec)
    assert rest.out == "-rf\n"


def test_ids_that_do_not_fit_on_a_line_leave_nothing_behind(run, tmp_path):
    folder = odd_folder(tmp_path, "new\nline")
    outcome = run("select", folder, "-n", 30, "--method", "random", "--ids", "list", "-o", tmp_path / "s.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert "line break" in outcome.err
    assert not (tmp_path / "s.json").exists()


def test_json_prints_the_items(run, bank_folder):
    content = run.json("select", bank_folder, "-n", 6, "--method", "anchor-irt")
    assert (len(content["items"]), content["method"], content["seed"]) == (6, "anchor-irt", 0)
    assert set(content["items"][0]) == {"item_id", "scenario", "weight"}


def test_excluded_items_are_never_chosen(run, bank_folder, tmp_path):
    ids = load_bank(bank_folder).item_ids
    (tmp_path / "exclude.txt").write_text("\n".join(ids[:12]) + "\r\n\n")
    chosen = run("select", bank_folder, "-n", 18, "--ids", "list", "--exclude", tmp_path / "exclude.txt").out.split()
    assert sorted(chosen) == sorted(ids[12:])


@pytest.mark.parametrize("kind", ["ids.txt", "ids.csv", "ids.parquet", "chosen.json"])
def test_items_that_must_come_are_chosen_whatever_file_names_them(run, bank_folder, tmp_path, kind):
    ids = load_bank(bank_folder).item_ids[4:12]
    table = pl.DataFrame({"item_id": ids, "why": "sentinel"})
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    table.write_csv(tmp_path / "ids.csv")
    table.write_parquet(tmp_path / "ids.parquet")
    select(load_bank(bank_folder), 8, method="random", rng=2, included=ids).save(tmp_path / "chosen.json")
    outcome = run("select", bank_folder, "-n", 12, "--ids", "list", "--must-include", tmp_path / kind)
    chosen = outcome.out.split()
    assert len(chosen) == 12, outcome.err
    assert set(ids) <= set(chosen)


def one_model(bank_folder, path):
    """Write all answers of a new model."""
    bank = load_bank(bank_folder)
    answers = new_models(bank, 1)
    rows = answers.items.select("item_id", "scenario", model_id=pl.lit("new"), response=pl.Series(answers.responses[0]))
    rows.write_csv(path)
    return path


def test_stages_from_the_first_selection_to_the_estimate(run, bank_folder, tmp_path):
    first, second = tmp_path / "stage1.json", tmp_path / "stage2.json"
    results = one_model(bank_folder, tmp_path / "new.csv")
    outcome = run.ok("select", bank_folder, "-n", 15, "--stages", 2, "-o", first)
    said = outcome.err.replace("\n", " ")
    assert (
        f"for the 10 items of the next stage: itembank select {bank_folder} --after RESULTS --selection {first}" in said
    )
    outcome = run.ok("select", bank_folder, "--after", results, "--selection", first, "-o", second)
    assert "items: v-optimal at the ability of new: stage 2 of 2." in outcome.err
    chosen = Selection.load(second)
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
    new = new_models(load_bank(bank_folder), n_models=1)
    write_responses(new, tmp_path / "new.parquet")
    outcome = run("estimate", bank_folder, tmp_path / "new.parquet", "--selection", tmp_path / "s.json")
    assert "'law': no item was answered, and the score is predicted from the other answers." in outcome.err


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_fewer_items_than_scenarios_say_what_is_left_out_and_how_many_are_enough(run, bank_folder):
    said = run.ok("select", bank_folder, "-n", 2).err
    assert "None of the 2 items is of" in said
    assert "For an item of each of the 3: -n 3." in said
    rows = run.json("select", bank_folder, "-n", 3)["items"]
    assert len({row["scenario"] for row in rows}) == 3
    assert "None of the" not in run.ok("select", bank_folder, "-n", 3).err
    refused = run("select", bank_folder, "-n", 2, "--method", "random").err
    assert "To leave scenarios out: --method auto, v-optimal or optimal-design." in refused
