import numpy as np
import pytest

from itembank.bank.bank_files import save_bank
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from itembank.selection.select import select
from tests.bank.banks import make_bank
from tests.calibration.test_dimensions import simulated

QUICK = ("--dims", "1", "--method", "map")


@pytest.fixture(scope="module")
def responses_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("responses") / "responses.parquet"
    write_responses(simulated(40, 80, 2), path)
    return path


def test_dimensions_as_json_with_a_figure(run, responses_file, tmp_path):
    figure = tmp_path / "dimensions.svg"
    outcome = run.ok("study", "dimensions", responses_file, "--dims", "1,2", "--figure", figure, "--format", "json")
    found = outcome.json
    assert (found["n_dims"], found["n_dims_parallel"], found["n_models"]) == (2, 2, 40)
    assert {(row["n_shown"], row["n_dims"]) for row in found["held_out"]} == {(16, 1), (16, 2), (40, 1), (40, 2)}
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    assert str(figure) in outcome.err


def test_homogeneity_as_json_with_a_figure(run, responses_file, tmp_path):
    figure = tmp_path / "homogeneity.svg"
    found = run.json("study", "homogeneity", responses_file, "--figure", figure)
    assert found["budget"] == 50
    assert [row["scenario"] for row in found["scenarios"]] == ["s0", "s1"]
    assert 0.0 < found["scenarios"][0]["reliability"] < 1.0
    assert figure.read_text(encoding="utf-8").startswith("<svg")


def test_homogeneity_of_a_bank_is_that_of_its_responses(run, responses_file, tmp_path):
    bank = tmp_path / "bank"
    run.ok("calibrate", responses_file, "-o", bank, "--method", "map", "--dims", 1, "--no-folds")
    of_bank, of_responses = (
        run("study", "homogeneity", source, "--format", "csv").out for source in (bank, responses_file)
    )
    assert of_bank == of_responses
    assert of_bank.startswith("scenario,n_items")


def test_predictions_as_json_with_a_figure(run, bank_folder, tmp_path):
    figure = tmp_path / "predictions.svg"
    found = run.json("study", "predictions", bank_folder, "--figure", figure)
    assert found["family"] == "bernoulli"
    error, by_chance = (100.0 * found["scenarios"][-1][name] for name in ("calibration_error", "by_chance"))
    said = run.ok("study", "predictions", bank_folder).out.splitlines()[0]
    assert f"off by {error:.1f} points on average; chance alone would make it {by_chance:.1f}" in said
    assert found["scenarios"][-1]["scenario"] == "all items"
    assert sum(row["n_cells"] for row in found["bins"]) == 2 * found["scenarios"][-1]["n_cells"]
    assert figure.read_text(encoding="utf-8").startswith("<svg")


@pytest.fixture
def bank_with_selections(tmp_path):
    bank = make_bank()
    save_bank(bank, tmp_path / "bank")
    for method in ("random", "anchor-irt"):
        select(bank, 9, method=method, rng=0).save(tmp_path / f"{method}.json")
    return tmp_path


def test_weights_of_a_selection_as_json_with_a_figure(run, bank_with_selections):
    bank, selection = bank_with_selections / "bank", bank_with_selections / "random.json"
    figure = bank_with_selections / "weights.svg"
    found = run.json("study", "weights", bank, selection, "--figure", figure)
    assert [one["effective_items"] for one in found["selections"]] == [pytest.approx(9.0)]
    assert (found["parts"][0]["scenario"], found["parts"][0]["weight"]) == ("overall", pytest.approx(1.0))
    assert figure.read_text(encoding="utf-8").startswith("<svg")


def test_selections_stand_under_each_other_by_the_names_of_their_files(run, bank_with_selections):
    files = [bank_with_selections / f"{name}.json" for name in ("random", "anchor-irt")]
    outcome = run("study", "weights", bank_with_selections / "bank", *files, "--format", "csv")
    rows = [line.split(",") for line in outcome.out.splitlines()]
    assert [row[4] for row in rows[:3]] == ["selection", "random", "anchor-irt"]
    table = run("study", "weights", bank_with_selections / "bank", *files)
    assert table.out.startswith(
        "Of equal weight, the 9 items of random count like 9.0, the 9 items of anchor-irt count"
    )
    assert "effective_share" in table.out
    assert "weight_in_score" in table.out


def test_selections_of_one_file_name_are_called_by_their_paths(run, bank_with_selections):
    other = bank_with_selections / "other"
    other.mkdir()
    first, second = bank_with_selections / "random.json", other / "random.json"
    second.write_bytes(first.read_bytes())
    bank = bank_with_selections / "bank"
    found = run.json("study", "weights", bank, first, second)
    assert [one["selection"] for one in found["selections"]] == [str(first), str(second)]
    twice = run("study", "weights", bank, first, first)
    assert (twice.code, twice.out) == (2, "")
    assert "every selection once" in twice.err


def test_a_selection_of_items_that_the_bank_has_not_is_refused(run, bank_with_selections):
    select(make_bank(n_items=36), 36, method="random", rng=0).save(bank_with_selections / "more.json")
    outcome = run("study", "weights", bank_with_selections / "bank", bank_with_selections / "more.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert "math/30" in outcome.err


def test_a_figure_is_of_costs_where_one_is_named(run, tmp_path):
    plain = simulated(8, 20, 1)
    costs = {"output_tokens": np.ones((8, 20))}
    matrix = ResponseMatrix.create(plain.responses, scenarios=["a", "b"] * 10, costs=costs)
    write_responses(matrix, tmp_path / "tokens.parquet")
    words = ("study", "tasks", tmp_path / "tokens.parquet", "--figure", tmp_path / "costs.svg")
    run.ok(*words, "--cost", "tokens")
    assert "Cost of a response (tokens)" in (tmp_path / "costs.svg").read_text(encoding="utf-8")
    run.ok(*words)
    assert "Cost of a response" not in (tmp_path / "costs.svg").read_text(encoding="utf-8")
