import dataclasses
import json

import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.selections import Selection
from itembank.cli import select as select_command
from itembank.responses.response_files import write_responses
from itembank.selection.criteria import CRITERIA
from itembank.selection.select import select
from itembank.selection.selector_specs import METHODS, OptimalDesign
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
    assert selection.explanation.startswith("v-optimal. Cross-validated mean error of the overall score")
    assert f"Chosen by {selection.explanation}" in outcome.err


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
    rest = run(
        "select",
        folder,
        "-n",
        1,
        "--method",
        "optimal-design",
        *spec_file(tmp_path, 'criterion = "random"\nat_least = 0'),
        "--ids",
        "list",
        "--exclude",
        tmp_path / "exclude.txt",
    )
    assert rest.out == "-rf\n"


def test_ids_that_do_not_fit_on_a_line_leave_nothing_behind(run, tmp_path):
    folder = odd_folder(tmp_path, "new\nline")
    outcome = run("select", folder, "-n", 30, "--method", "random", "--ids", "list", "-o", tmp_path / "s.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert "line break" in outcome.err
    assert not (tmp_path / "s.json").exists()


def test_json_prints_the_items(run, bank_folder):
    content = json.loads(run("select", bank_folder, "-n", 6, "--method", "anchor-irt", "--format", "json").out)
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


def test_ids_that_must_come_and_are_not_there_are_named(run, bank_folder, tmp_path):
    (tmp_path / "ids.txt").write_text("math/0\nmath/no\n")
    outcome = run("select", bank_folder, "-n", 12, "--must-include", tmp_path / "ids.txt")
    assert outcome.code == 1
    assert "every included item must be in bank" in outcome.err
    assert "'math/no'" in outcome.err


def test_the_same_seed_chooses_the_same_items(run, bank_folder):
    first, again, other = (
        run("select", bank_folder, "-n", 9, "--method", "random", "--ids", "list", "--seed", seed).out
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_more_items_than_there_are_is_a_clear_error(run, bank_folder, tmp_path):
    outcome = run("select", bank_folder, "-n", 31, "-o", tmp_path / "s.json")
    assert outcome.code == 2
    assert "30" in outcome.err
    assert not (tmp_path / "s.json").exists()


@pytest.fixture
def costly_folder(tmp_path):
    """A small bank whose responses have costs."""
    save_bank(make_bank(with_extras=True), tmp_path / "costly")
    return tmp_path / "costly"


def chosen_by(run, folder, *options, n_items=6):
    outcome = run("select", folder, "-n", n_items, "--format", "json", *options)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


DESIGN = ("--method", "optimal-design")


def test_every_criterion_of_the_library_is_offered(run, costly_folder, tmp_path):
    for name in CRITERIA.kinds:
        content = chosen_by(run, costly_folder, *DESIGN, *spec_file(tmp_path, f'criterion = "{name}"'))
        assert content["recipe"]["options"]["criterion"] == name
        expected = select(load_bank(costly_folder), 6, method=OptimalDesign(name), rng=0)
        assert [row["item_id"] for row in content["items"]] == list(expected.item_ids)


WHOLE = """
criterion = "v-optimal"
per_cost = true
cost = "tokens"
input_weight = 0.25
at_least = {math = 2, law = 1}
at_most = 4
randomesque = 2
"""


def test_a_file_and_options_reach_the_spec(run, costly_folder, tmp_path):
    words = (*DESIGN, *spec_file(tmp_path, WHOLE), "--target", "law", "--seed", "3")
    content = chosen_by(run, costly_folder, *words)
    assert content["recipe"]["options"] == {
        "criterion": "v-optimal",
        "target": "law",
        "per_cost": True,
        "cost": "tokens",
        "input_weight": 0.25,
        "at_least": {"math": 2, "law": 1},
        "at_most": 4,
        "randomesque": 2,
    }
    scenarios = [row["scenario"] for row in content["items"]]
    assert scenarios.count("math") >= 2
    assert "law" in scenarios
    assert max(map(scenarios.count, scenarios)) <= 4


def test_every_method_takes_its_choices(run, costly_folder, tmp_path):
    words = ("--method", "v-optimal", *spec_file(tmp_path, "n_factors = 2"), "--target", "law")
    found = chosen_by(run, costly_folder, *words)["recipe"]["options"]
    assert (found["n_factors"], found["target"]) == (2, "law")
    words = ("--method", "stratified", *spec_file(tmp_path, 'allocation = "proportional"'))
    assert chosen_by(run, costly_folder, *words)["recipe"]["options"] == {"allocation": "proportional"}


def test_the_unit_of_the_cheapest_items_can_be_named(run, costly_folder, tmp_path):
    design = spec_file(tmp_path, 'criterion = "min-cost"\ncost = "output_tokens"')
    content = chosen_by(run, costly_folder, *DESIGN, *design)
    bank = load_bank(costly_folder)
    costs = bank.responses.expected_costs()["output_tokens"]
    chosen = bank.responses.item_indices([row["item_id"] for row in content["items"]])
    assert costs[chosen].mean() < 0.8 * costs.mean()


def test_scenarios_may_go_without(run, costly_folder, tmp_path):
    assert len(chosen_by(run, costly_folder, *DESIGN, *spec_file(tmp_path, "at_least = 0"), n_items=2)["items"]) == 2


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("at_least = 2", ("--method", "random"), "spec.toml: the file must be empty"),
        ("at_least = 2", (), "--spec goes with --method NAME"),
        ("at_leats = 2", DESIGN, "Did you mean 'at_least'?"),
        ("at_least.maths = 2", DESIGN, "at_least must name scenarios of the bank"),
        ("at_least = 2.5", DESIGN, "at_least must be a whole number or a table, got 2.5"),
        ("at_least.math = 3\nat_most = 2", DESIGN, "at_least is above at_most in 'math (3 > 2)'"),
        ("at_most.law = 3", (*DESIGN, "--per-scenario"), "every scenario gets n_items = 6"),
        ("", (*DESIGN, "--target", "maths"), "target must be one of"),
        (
            "",
            ("--method", "random", "--target", "law"),
            "--target goes with --method auto, v-optimal or optimal-design",
        ),
        ('criterion = "random"\nper_cost = true', DESIGN, "only information can be divided by cost"),
    ],
)
def test_choices_that_do_not_fit_are_refused(run, costly_folder, tmp_path, content, options, message):
    outcome = run("select", costly_folder, "-n", 6, *options, *spec_file(tmp_path, content))
    assert (outcome.code, outcome.out) == (2, "")
    assert message in " ".join(outcome.err.split())


def test_a_scenario_is_no_target_of_auto(run, costly_folder):
    outcome = run("select", costly_folder, "-n", 6, "--target", "law")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--target law goes with --method v-optimal or optimal-design" in " ".join(outcome.err.split())


def test_an_unknown_unit_names_the_known_ones(run, costly_folder, tmp_path):
    design = spec_file(tmp_path, 'criterion = "fisher"\nper_cost = true\ncost = "euros"')
    outcome = run("select", costly_folder, "-n", 6, *DESIGN, *design)
    assert (outcome.code, outcome.out) == (1, "")
    assert "must be one of 'tokens', 'output_tokens', got 'euros'" in " ".join(outcome.err.split())


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
    outcome = run("select", bank_folder, "-n", 15, "--stages", 2, "-o", first)
    assert outcome.code == 0, outcome.err
    said = outcome.err.replace("\n", " ")
    assert (
        f"for the 10 items of the next stage: itembank select {bank_folder} --after RESULTS --selection {first}" in said
    )
    outcome = run("select", bank_folder, "--after", results, "--selection", first, "-o", second)
    assert outcome.code == 0, outcome.err
    assert "Chosen by v-optimal at the ability of new: stage 2 of 2." in outcome.err
    chosen = Selection.load(second)
    assert (chosen.n_items, chosen.whole.n_items) == (10, 15)
    ids = run("select", bank_folder, "--after", results, "--selection", first, "--ids", "list").out.split()
    assert sorted(ids) == sorted(chosen.item_ids)  # what is left to run, and nothing else
    outcome = run("estimate", bank_folder, results, "--selection", second, "--format", "json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["rows"][-1]["n_items"] == 15


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "number of items is missing: -n N"),
        (("--after", "new.csv"), "--after RESPONSES --selection FILE"),
        (("--selection", "s.json"), "--after RESPONSES --selection FILE"),
        (("--after", "new.csv", "--selection", "s.json", "-n", 9), "--n-items goes with a first stage, not with"),
        (("--after", "new.csv", "--selection", "s.json", "--target", "law"), "--target goes with a first stage"),
    ],
)
def test_a_first_stage_and_a_next_one_are_not_mixed(run, bank_folder, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    for name in ("new.csv", "s.json"):
        (tmp_path / name).touch()
    outcome = run("select", bank_folder, *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_scenario_is_predicted_without_being_asked(run, bank_folder, tmp_path):
    outcome = run("select", bank_folder, "-n", 9, "-o", tmp_path / "s.json", "--predict", "law", "--format", "json")
    assert outcome.code == 0
    content = json.loads(outcome.out)
    assert {row["scenario"] for row in content["items"]} == {"math", "code"}
    (record,) = content["never_asked"]
    assert record["target"] == "law"
    assert f"'law' is never asked: cross-validated mean error {100.0 * record['error']:.1f} points" in outcome.err
    new = new_models(load_bank(bank_folder), n_models=1)
    write_responses(new, tmp_path / "new.parquet")
    outcome = run("estimate", bank_folder, tmp_path / "new.parquet", "--selection", tmp_path / "s.json")
    assert "'law': no item was answered, and the score is predicted from the other answers." in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "law", "--method", "v-optimal"), "--predict names the wanted score itself: leave --target out"),
        (("--predict", "math", "--predict", "code"), "Leave one at least to be asked."),
        (("--after", "new.csv", "--selection", "s.json"), "--predict goes with a first stage, not with --after"),
    ],
)
def test_what_does_not_go_with_a_prediction_is_refused(run, bank_folder, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    for name in ("new.csv", "s.json"):
        (tmp_path / name).write_text("{}")
    size = () if "--after" in options else ("-n", 6)
    outcome = run("select", bank_folder, *size, "--predict", "law", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in " ".join(outcome.err.split())
