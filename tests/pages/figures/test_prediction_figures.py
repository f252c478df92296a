import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.pages.figures.prediction_figures import KINDS, draw_prediction, styles
from itembank.studies.prediction.assessors import Assessor
from itembank.studies.prediction.error_curves import errors_by
from itembank.studies.run import run_prediction
from tests.pages.figures.drawn import message_of, names_of
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
def test_every_kind_can_be_drawn(result, kind):
    figure = draw_prediction(result, kind)
    figure.draw_without_rendering()
    assert figure.axes


def test_curves_are_those_of_the_summary(result):
    figure = draw_prediction(result, "cost", sets=("extrapolation",), n_tasks=(3,), assessors=("2pl, fisher",))
    (axes,) = figure.axes
    line = axes.get_lines()[0]
    rows = result.curves.filter(assessor="2pl, fisher", set="extrapolation", n_calibration_tasks=3).sort("budget")
    np.testing.assert_allclose(line.get_xdata(), rows["cost"])
    np.testing.assert_allclose(line.get_ydata(), 100.0 * rows["mae"].to_numpy())
    assert axes.get_xscale() == "log"
    assert names_of(axes) == ["2pl, fisher"]
    assert axes.get_title(loc="left") == "extrapolation, 3 calibration tasks"


def test_two_assessors_are_drawn_task_by_task(result):
    figure = draw_prediction(result, "tasks", budget=4)
    left, right = figure.axes
    pair = ("2pl, adaptive fisher", "2pl, adaptive v-optimal")
    table = errors_by(result.predictions, "task", pair, n_tasks=3, which="extrapolation", budget=4)
    assert [label.get_text() for label in left.get_yticklabels()] == table["name"].to_list()
    np.testing.assert_allclose([bar.get_width() for bar in left.patches], 100.0 * table["difference"].to_numpy())
    np.testing.assert_allclose(right.get_lines()[0].get_xdata(), 100.0 * table["first"].to_numpy())
    n_better = (table["difference"] > 0.0).sum()
    assert message_of(figure).startswith(f"2pl, adaptive v-optimal errs less on {n_better} of {table.height} tasks")


def test_choices_are_per_time_that_a_task_could_be_chosen(result):
    figure = draw_prediction(result, "choices", assessors=("2pl, adaptive fisher",), n_tasks=(1,), budget=12)
    (axes,) = figure.axes
    # one calibration task: all of its items are taken
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], 12.0)


def test_errors_are_in_percent_of_those_with_one_ability(result):
    figure = draw_prediction(result, "dims", sets=("extrapolation",), n_tasks=(3,))
    (axes,) = figure.axes
    errors = result.curves.filter(set="extrapolation", n_calibration_tasks=3).sort("budget")
    one, two = (errors.filter(assessor=name)["mae"].to_numpy() for name in ("2pl, random", "mirt, random"))
    for place, container in enumerate(axes.containers):
        line = container.lines[0]
        np.testing.assert_allclose(line.get_xdata(), [1, 2])
        np.testing.assert_allclose(line.get_ydata(), [0.0, 100.0 * (two[place] / one[place] - 1.0)], rtol=1e-6)
    assert len(axes.containers) == 3
    assert "abilit" in message_of(figure)
    with pytest.raises(ParameterError, match="item models of one, and of other numbers of abilities"):
        draw_prediction(result, "dims", assessors=("2pl, random", "2pl, fisher"))


def test_assessors_that_look_alike_differ_in_line_or_marker(result):
    found = styles(result, [one.name for one in ASSESSORS])
    assert len(set(found.values())) == len(ASSESSORS)
    adaptive, divided = found["2pl, adaptive fisher"], found["2pl, adaptive fisher/cost"]
    assert adaptive[:3] == divided[:3]


@pytest.mark.parametrize(
    ("kind", "choices", "message"),
    [
        ("error", {}, "kind of a figure must be one of"),
        ("items", {"assessors": ("x",)}, "assessors must be among"),
        ("items", {"sets": ("x",)}, "sets must be among"),
        ("items", {"n_tasks": (2,)}, "n_tasks must be among '1', '3', got '2'"),
        ("choices", {"budget": 5}, "budget must be among"),
        ("tasks", {"assessors": ("2pl, random",)}, "two assessors are compared, got 1"),
    ],
)
def test_what_the_study_does_not_have_is_refused(result, kind, choices, message):
    with pytest.raises(ParameterError, match=message):
        draw_prediction(result, kind, **choices)


def test_a_study_that_adapts_one_way_needs_names(tmp_path):
    spec = make_spec(Assessor("2pl"), cost="", n_partitions=2)
    result = run_prediction(spec, tmp_path / "study", responses=make_responses())
    with pytest.raises(ParameterError, match="Name two assessors"):
        draw_prediction(result, "tasks")
    with pytest.raises(ParameterError, match="names no cost"):
        draw_prediction(result, "cost")
