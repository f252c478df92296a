"""`itembank study`."""

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.selection.select import select
from itembank_studies.results import StudyResult
from tests.bank.banks import make_bank
from tests.calibration.test_dimensions import simulated
from tests.cli.conftest import holds
from tests.studies.files import STUDY, write_toml
from tests.studies.simulated import make_responses


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    data = make_responses(n_models=24, n_items=30, n_scenarios=1)
    names = np.repeat(data.model_ids, data.n_items)
    rows = {"model_id": names, "item_id": data.item_ids * data.n_models, "response": data.responses.ravel()}
    pl.DataFrame(rows).write_csv(folder / "responses.csv")
    data.models.write_csv(folder / "models.csv")
    write_toml(folder / "study.toml", STUDY | {"data": {"responses": "responses.csv", "models": "models.csv"}})
    return folder


def test_run_tells_how_far_it_is_goes_on_and_prints_nothing(made, study, run, workplace):
    assert made.stdout == ""
    holds(made.stderr, "3 of 3 folds", "left")
    assert StudyResult.load(study).manifest.study["name"] == "small"
    assert "To see it as a page: itembank report" in made.stderr
    assert "3 of 3 folds" in run.ok("study", "run", workplace / "study.toml", "-o", study, "--jobs", 1).err


@pytest.mark.usefixtures("without_library")
def test_the_page_and_a_figure_of_a_study_can_be_made_later(run, study, tmp_path):
    page = tmp_path / "study.html"
    run.ok("report", study, "-o", page)
    assert "Mean error" in page.read_text(encoding="utf-8")
    refused = run("report", study, study / "summary.parquet", "-o", page)
    assert refused.code == 2, refused.err
    outcome = run.ok("study", "table", study, "--figure", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "anchor-irt" in outcome.out


def test_a_table_has_one_row_a_method_and_one_column_a_size(run, study):
    outcome = run.ok("study", "table", study, "--metric", "mae", "--metric", "spearman")
    first, table = outcome.out.split("\n", 1)
    of_most = StudyResult.load(study).summary.filter(budget=12.0, target="overall")
    (values,) = of_most.filter(split="random", selector="anchor-irt", estimator="gp-irt").to_dicts()
    means = {key: part["mae"].mean() for key, part in of_most.group_by("selector", "estimator")}
    best = min(means, key=means.get)
    assert first.startswith(
        f"{best[0]} × {best[1]} errs least with the most items, {100 * means[best]:.1f} points; mae of overall"
    )
    assert f"{100 * values['mae']:.2f} ± {100 * values['mae_se']:.2f}" in outcome.out
    assert f"{values['spearman']:.3f} ± {values['spearman_se']:.3f}" in outcome.out
    assert table.count("gp-irt") == 2 * 2 * 2
    assert "n = 6" in outcome.out


def test_rows_are_those_of_the_summary_and_errors_stand_over_those_of_one_method(run, study):
    summary = StudyResult.load(study).summary.filter(target="overall")
    rows = run.json("study", "table", study)["rows"]
    assert ([row["mae"] for row in rows], set(rows[0])) == (summary["mae"].to_list(), set(summary.columns))
    words = ("--format", "json", "--metric", "coverage", "--target", "all")
    rows = run("study", "table", study, *words).json["rows"]
    assert list(rows[0]) == ["split", "selector", "estimator", "budget", "target", "coverage", "coverage_se"]
    outcome = run.ok("study", "table", study, "--against", "anchor-irt/gp-irt")
    holds(outcome.out, "1.000 ± 0.000", "geometric mean")
    rows = run.json("study", "table", study, "--against", "random/weighted")["rows"]
    known = StudyResult.load(study).summary.filter(target="overall").to_dicts()
    mae = {(row["split"], row["selector"], row["estimator"], row["budget"]): row["mae"] for row in known}
    for row in rows:
        key = (row["split"], row["selector"], row["estimator"], row["budget"])
        assert row["ratio"] == pytest.approx(mae[key] / mae[row["split"], "random", "weighted", row["budget"]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "{study}", "--metric", "mse"), "mae, p95"),
        (("table", "{study}", "--target", "maths"), "all, overall"),
        (("table", "{study}", "--against", "best/gp-irt"), "'anchor-irt gp-irt'"),
        (("table", "{study}", "--against", "random/gp-irt", "--metric", "mae"), "--metric goes with metrics"),
        (("table", "{study}", "--kind", "bars", "--figure", "{new}.png"), "spread"),
        (("table", "{study}", "--kind", "error", "--figure", "{new}.gif"), "png"),
        (("run", "{file}", "-o", "{new}", "--jobs", "0"), "n_jobs"),
    ],
)
def test_wrong_options_are_usage_errors(run, study, workplace, tmp_path, arguments, message):
    places = {"study": study, "new": tmp_path / "new", "file": workplace / "study.toml"}
    run.fails(2, message, "study", *(one.format(**places) for one in arguments))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("old", "new", "message", "code"),
    [
        ('"gp-irt"', '"gpirt"', "'gpirt'", 2),
        ('column = "date"', 'column = "day"', "'day'", 1),
        ("repeats = 2", "repeats = 2\nlevel = 1.0", "level must be between 0 and 1", 2),
        ('"responses.csv"', '"nothing.csv"', "nothing.csv", 1),
        ('"responses.csv"', '"${NO_SUCH_FOLDER}/r.csv"', "NO_SUCH_FOLDER", 2),
        ("n_items = [6, 12]", "n_items = [31]", "from 1", 2),
    ],
)
def test_a_wrong_study_is_one_line(run, workplace, tmp_path, old, new, message, code):
    text = (workplace / "study.toml").read_text(encoding="utf-8")
    text = text.replace(old, new).replace('"models.csv"', f'"{workplace}/models.csv"')
    (tmp_path / "study.toml").write_text(text.replace('"responses.csv"', f'"{workplace}/responses.csv"'))
    outcome = run("study", "run", tmp_path / "study.toml", "-o", tmp_path / "done", "--jobs", 1)
    assert (outcome.code, (message in outcome.err, "Traceback" in outcome.err)) == (code, (True, False))


QUICK = ("--dims", "1", "--method", "map")


@pytest.fixture(scope="module")
def responses_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("responses") / "responses.parquet"
    ib.write_responses(simulated(40, 80, 2), path)
    return path


def test_dimensions_homogeneity_and_predictions_as_json_with_a_figure(run, responses_file, tmp_path):
    figure = tmp_path / "dimensions.svg"
    outcome = run.ok("study", "dimensions", responses_file, "--dims", "1,2", "--figure", figure, "--format", "json")
    found = outcome.json
    assert (found["n_dims"], found["n_dims_parallel"], found["n_models"]) == (2, 2, 40)
    assert {(row["n_shown"], row["n_dims"]) for row in found["held_out"]} == {(16, 1), (16, 2), (40, 1), (40, 2)}
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    assert str(figure) in outcome.err
    figure = tmp_path / "homogeneity.svg"
    found = run.json("study", "homogeneity", responses_file, "--figure", figure)
    assert (found["budget"], [row["scenario"] for row in found["scenarios"]]) == (50, ["s0", "s1"])
    assert 0.0 < found["scenarios"][0]["reliability"] < 1.0
    assert figure.read_text(encoding="utf-8").startswith("<svg")


def test_homogeneity_of_a_bank_is_that_of_its_responses_and_figures_have_costs(run, responses_file, tmp_path):
    bank = tmp_path / "bank"
    run.ok("calibrate", responses_file, "-o", bank, "--method", "map", "--dims", 1, "--no-folds")
    command = ("study", "homogeneity")
    of_bank, of_responses = (run(*command, one, "--format", "csv").out for one in (bank, responses_file))
    assert of_bank == of_responses
    assert of_bank.startswith("scenario,n_items")
    plain, costs = simulated(8, 20, 1), {"output_tokens": np.ones((8, 20))}
    matrix = ib.ResponseMatrix.create(plain.responses, scenarios=["a", "b"] * 10, costs=costs)
    ib.write_responses(matrix, tmp_path / "tokens.parquet")
    words = ("study", "tasks", tmp_path / "tokens.parquet", "--figure", tmp_path / "costs.svg")
    run.ok(*words, "--cost", "tokens")
    assert "Cost of a response (tokens)" in (tmp_path / "costs.svg").read_text(encoding="utf-8")
    run.ok(*words)
    assert "Cost of a response" not in (tmp_path / "costs.svg").read_text(encoding="utf-8")


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
    bank.save(tmp_path / "bank")
    for method in ("random", "anchor-irt"):
        select(bank, 9, method=method, rng=0).save(tmp_path / f"{method}.json")
    return tmp_path


def test_weights_of_selections_as_json_csv_table_and_figure(run, bank_with_selections):
    bank, selection = bank_with_selections / "bank", bank_with_selections / "random.json"
    figure = bank_with_selections / "weights.svg"
    found = run.json("study", "weights", bank, selection, "--figure", figure)
    assert [one["effective_items"] for one in found["selections"]] == [pytest.approx(9.0)]
    assert (found["parts"][0]["scenario"], found["parts"][0]["weight"]) == ("overall", pytest.approx(1.0))
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    files = [bank_with_selections / f"{name}.json" for name in ("random", "anchor-irt")]
    outcome = run("study", "weights", bank_with_selections / "bank", *files, "--format", "csv")
    rows = [line.split(",") for line in outcome.out.splitlines()]
    assert [row[4] for row in rows[:3]] == ["selection", "random", "anchor-irt"]
    table = run("study", "weights", bank_with_selections / "bank", *files)
    assert table.out.startswith(
        "Of equal weight, the 9 items of random count like 9.0, the 9 items of anchor-irt count"
    )
    holds(table.out, "effective_share", "weight_in_score")


def test_selections_must_be_other_ones_of_the_bank_and_have_names(run, bank_with_selections):
    other = bank_with_selections / "other"
    other.mkdir()
    first, second = bank_with_selections / "random.json", other / "random.json"
    second.write_bytes(first.read_bytes())
    bank = bank_with_selections / "bank"
    found = run.json("study", "weights", bank, first, second)
    assert [one["selection"] for one in found["selections"]] == [str(first), str(second)]
    run.fails(2, "every selection once", "study", "weights", bank, first, first)
    select(make_bank(n_items=36), 36, method="random", rng=0).save(bank_with_selections / "more.json")
    run.fails(1, "math/30", "study", "weights", bank_with_selections / "bank", bank_with_selections / "more.json")
