import numpy as np
import pytest

from itembank.pages.blocks import Chart
from itembank.pages.prediction_study_page import study_folder_page
from itembank.studies.prediction.assessors import Assessor
from itembank.studies.run import run_prediction
from tests.pages.reading import answers, check_charts, column, of_kind
from tests.studies.prediction.simulated import make_responses, make_spec


@pytest.fixture(scope="module")
def prediction(tmp_path_factory):
    spec = make_spec(Assessor("2pl"), Assessor("2pl", "selection", "fisher"), n_calibration_tasks=(1, 3))
    return run_prediction(spec, tmp_path_factory.mktemp("study") / "study", responses=make_responses())


def test_a_prediction_study_says_what_is_best_on_tasks_asked_and_not_asked(prediction):
    page = study_folder_page(prediction.folder, command="itembank report study")
    assert page.kind == "Prediction study"
    budgets = prediction.curves["budget"].unique().sort()
    at = prediction.curves.filter(n_calibration_tasks=3, budget=budgets[len(budgets) // 2])
    for answer, which in zip(answers(page), ("interpolation", "extrapolation"), strict=True):
        best = at.filter(set=which).sort("mae").row(0, named=True)
        assert answer.value == f"{100.0 * best['mae']:.1f} points"
        assert best["assessor"] in answer.words
    chart = of_kind(page, Chart)[0]
    np.testing.assert_allclose(chart.data[0].columns["error"], 100.0 * prediction.curves["mae"].to_numpy())
    assert column(page, "Tasks", "task") == prediction.tasks["task"].to_list()
    assert len(column(page, "Cost of reaching an error", "cost")) > 0
    check_charts(page)
