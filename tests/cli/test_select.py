import json

import pytest

from itembank.cli.select import METHODS as OFFERED
from itembank.data.bank_files import load_bank
from itembank.data.selections import Selection
from itembank.selection.specs import METHODS


def test_every_method_of_the_library_is_offered():
    assert ("auto", *METHODS.kinds) == OFFERED


@pytest.mark.parametrize("method", [method for method in OFFERED if method not in {"auto", "v-optimal", "optimal-design"}])
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
    assert selection.method in OFFERED[1:]
    assert selection.explanation.startswith(selection.method)
    assert f"Chosen by {selection.explanation}" in outcome.err
    assert "stratified (allocation proportional)" in selection.explanation


def test_per_scenario_counts_for_each(run, bank_folder, tmp_path):
    run("select", bank_folder, "-n", 5, "--per-scenario", "-o", tmp_path / "s.json")
    assert Selection.load(tmp_path / "s.json").n_items == 15


def test_emits_what_lm_eval_takes(run, bank_folder):
    outcome = run("select", bank_folder, "-n", 9, "--emit", "lm-eval")
    samples = json.loads(outcome.out)
    assert sorted(samples) == ["code", "law", "math"]
    for documents in samples.values():
        assert documents == sorted(set(documents))
    assert sum(map(len, samples.values())) == 9


def test_emits_plain_ids(run, bank_folder):
    ids = run("select", bank_folder, "-n", 9, "--emit", "ids").out.split()
    assert len(ids) == len(set(ids) & set(load_bank(bank_folder).item_ids)) == 9


def test_json_prints_the_items(run, bank_folder):
    content = json.loads(run("select", bank_folder, "-n", 6, "--method", "anchor-irt", "--format", "json").out)
    assert (len(content["items"]), content["method"], content["seed"]) == (6, "anchor-irt", 0)
    assert set(content["items"][0]) == {"item_id", "scenario", "weight"}


def test_excluded_items_are_never_chosen(run, bank_folder, tmp_path):
    ids = load_bank(bank_folder).item_ids
    (tmp_path / "exclude.txt").write_text("\n".join(ids[:12]) + "\r\n\n")
    chosen = run("select", bank_folder, "-n", 18, "--emit", "ids", "--exclude", tmp_path / "exclude.txt").out.split()
    assert sorted(chosen) == sorted(ids[12:])


def test_the_same_seed_chooses_the_same_items(run, bank_folder):
    first, again, other = (
        run("select", bank_folder, "-n", 9, "--method", "random", "--emit", "ids", "--seed", seed).out
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_more_items_than_there_are_is_a_clear_error(run, bank_folder, tmp_path):
    outcome = run("select", bank_folder, "-n", 31, "-o", tmp_path / "s.json")
    assert outcome.code == 2
    assert "30" in outcome.err
    assert not (tmp_path / "s.json").exists()
