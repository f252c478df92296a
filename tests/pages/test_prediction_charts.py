import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.shown import show
from itembank_studies.charts.prediction_charts import KINDS, prediction_chart
from itembank_studies.prediction.error_curves import errors_by
from itembank_studies.prediction.prediction_spec import Assessor
from itembank_studies.run import run_prediction
from tests.pages.reading import check_chart, check_charts, columns_of
from tests.studies.prediction.simulated import make_responses, make_spec

ASSESSORS = (
    Assessor("2pl"),
    Assessor("2pl", "selection", "fisher"),
    Assessor("2pl", "adaptation", "fisher"),
    Assessor("2pl", "adaptation", "fisher", per_cost=True),
    Assessor("2pl", "adaptation", "v-optimal"),
    Assessor("mirt"),
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    spec = make_spec(*ASSESSORS, n_calibration_tasks=(1, 3))
    return run_prediction(spec, tmp_path_factory.mktemp("study") / "study", responses=make_responses())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_drawn(result, kind, tmp_path):
    chart = prediction_chart(result, kind)
    check_chart(chart)
    assert chart.save(tmp_path / "f.svg").stat().st_size > 5_000


def test_the_page_has_errors_against_items_and_cost(result):
    page = show(result)
    assert [len(page.charts), page.kind] == [2, "Prediction study"]
    check_charts(page)


def test_curves_are_those_of_the_summary(result):
    chart = prediction_chart(result, "cost", sets=("extrapolation",), n_tasks=(3,), assessors=("2pl, fisher",))
    data = columns_of(chart)
    rows = result.curves.filter(assessor="2pl, fisher", set="extrapolation", n_calibration_tasks=3).sort("budget")
    np.testing.assert_allclose(data["cost"], rows["cost"])
    np.testing.assert_allclose(data["error"], 100.0 * rows["mae"].to_numpy())
    assert set(data["panel"]) == {"3 tasks asked: tasks that were not asked"}


def test_two_assessors_are_drawn_task_by_task(result):
    chart = prediction_chart(result, "tasks", budget=4)
    data = columns_of(chart)
    pair = ("2pl, adaptive fisher", "2pl, adaptive v-optimal")
    table = errors_by(result.predictions, "task", pair, n_tasks=3, which="extrapolation", budget=4).reverse()
    assert list(data["name"]) == table["name"].to_list()
    for name in ("difference", "first", "second"):
        np.testing.assert_allclose(data[name], 100.0 * table[name].to_numpy())
    n_better = (table["difference"] > 0.0).sum()
    assert chart.title.startswith(f"2pl, adaptive v-optimal errs less on {n_better} of {table.height} tasks")


def test_errors_are_in_percent_of_those_with_one_ability(result):
    chart = prediction_chart(result, "dims", sets=("extrapolation",), n_tasks=(3,))
    data = columns_of(chart)
    errors = result.curves.filter(set="extrapolation", n_calibration_tasks=3).sort("budget")
    one, two = (errors.filter(assessor=name)["mae"].to_numpy() for name in ("2pl, random", "mirt, random"))
    assert list(data["n_dims"]) == [1, 2] * 3
    np.testing.assert_array_equal(data["percent"][::2], 0.0)
    np.testing.assert_allclose(data["percent"][1::2], 100.0 * (two / one - 1.0), rtol=1e-6)
    assert "abilit" in chart.title
    with pytest.raises(ParameterError, match="item models of one, and of other numbers of abilities"):
        prediction_chart(result, "dims", assessors=("2pl, random", "2pl, fisher"))


@pytest.mark.parametrize(
    ("kind", "choices", "message"),
    [
        ("error", {}, "kind of a figure must be one of"),
        ("items", {"assessors": ("x",)}, "assessors must be among"),
        ("items", {"sets": ("x",)}, "sets must be among"),
        ("items", {"n_tasks": (2,)}, "n_tasks must be among '1', '3', got '2'"),
        ("tasks", {"budget": 5}, "budget must be among"),
        ("tasks", {"assessors": ("2pl, random",)}, "two assessors are compared, got 1"),
    ],
)
def test_what_the_study_does_not_have_is_refused(result, kind, choices, message):
    with pytest.raises(ParameterError, match=message):
        prediction_chart(result, kind, **choices)


def test_a_study_that_adapts_one_way_needs_names(tmp_path):
    spec = make_spec(Assessor("2pl"), cost="", n_partitions=2)
    result = run_prediction(spec, tmp_path / "study", responses=make_responses())
    with pytest.raises(ParameterError, match="Name two assessors"):
        prediction_chart(result, "tasks")
    with pytest.raises(ParameterError, match="names no cost"):
        prediction_chart(result, "cost")
