import pytest

from itembank.responses.response_files import write_responses
from itembank_studies.results import PredictionResult
from tests.cli.conftest import holds
from tests.studies.files import PREDICTION, write_toml
from tests.studies.prediction.simulated import make_responses


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prediction")
    write_responses(make_responses(), folder / "responses.parquet")
    plain, adapted = PREDICTION["assessors"]
    adapted = adapted | {"selector": ["fisher", "v-optimal"], "per_cost": [False, True]}
    changes = {"n_items": [1, 4, 12], "assessors": [plain, adapted]}
    write_toml(folder / "study.toml", PREDICTION | changes | {"data": {"responses": "responses.parquet"}})
    return folder


@pytest.mark.usefixtures("without_library")
def test_it_tells_how_far_it_is_and_goes_on(run, workplace, made, study, tmp_path):
    assert made.stdout == ""
    holds(made.stderr, "2 of 2 partitions", "Next: itembank study table")
    page = tmp_path / "prediction.html"
    run.ok("report", study, "-o", page)
    assert "tasks that were not asked" in page.read_text(encoding="utf-8")
    assert "2 of 2 partitions" in run.ok("study", "run", workplace / "study.toml", "-o", study, "--jobs", 1).err


def test_a_table_has_errors_costs_and_what_errors_cost(run, study):
    outcome = run.ok("study", "table", study, "--set", "extrapolation", "--tasks", 3)
    curves = PredictionResult.load(study).curves.filter(
        set="extrapolation", n_calibration_tasks=3, assessor="2pl, adaptive v-optimal", budget=12
    )
    (row,) = curves.to_dicts()
    assert f"{100 * row['mae']:.2f} ± {100 * row['mae_se']:.2f}" in outcome.out
    assert f"{row['cost']:,.1f}" in outcome.out or f"{row['cost']:,.0f}" in outcome.out
    holds(outcome.out, "cost of reaching an error", "n_held_out")
    assert "interpolation" not in outcome.out


def test_parts_and_a_figure_can_be_asked_for(run, study, tmp_path):
    outcome = run("study", "table", study, "--show", "reach", "--format", "json")
    assert len(outcome.json["reach"]) == PredictionResult.load(study).costs.height
    outcome = run("study", "table", study, "--show", "at-cost")
    assert ("at the cost of the reference" in outcome.out, "held out" in outcome.out) == (True, False)
    outcome = run("study", "table", study, "--show", "tasks", "--format", "csv")
    assert outcome.out.splitlines()[0] == "task,n_items,n_held_out"
    run.ok("study", "table", study, "--figure", tmp_path / "items.png")
    assert (tmp_path / "items.png").read_bytes().startswith(b"\x89PNG")


def test_a_table_has_differences_to_one_assessor(run, study):
    rows = run.json("study", "table", study, "--against", "2pl, random")["rows"]
    assert len(rows) == 5 * 2 * 2 * 3
    assert {"difference", "difference_se", "ratio", "ratio_se"} <= set(rows[0])
    shown = run("study", "table", study, "--against", "2pl, random")
    assert "mean absolute error minus that of 2pl, random" in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "--metric", "mae"), "--metric goes with a study of whole scores"),
        (("table", "--show", "reach", "--against", "x"), "--show goes with errors as they are, not with --against"),
        (("table", "--tasks", 2), "must be one of 1, 3, got 2"),
        (("table", "--against", "x"), "the reference must be one of"),
        (("table", "--kind", "rank", "--figure", "x.png"), "must be one of items, cost, tasks, models, dims"),
        (("table", "--kind", "items", "--assessor", "x", "--figure", "x.png"), "assessors must be among"),
    ],
)
def test_what_does_not_fit_is_refused(run, study, arguments, message):
    outcome = run("study", arguments[0], study, *arguments[1:])
    assert outcome.code in {1, 2}
    assert message in " ".join(outcome.err.split())
