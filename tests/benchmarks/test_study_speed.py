import polars as pl
import pytest

from benchmarks.study_speed import PARTS, profile, spent, study
from tests.studies.simulated import make_responses, make_spec


def test_the_study_is_the_one_that_was_promised():
    spec = study(10)
    assert (spec.repeats, len(spec.selectors), len(spec.estimators), len(spec.n_items)) == (10, 6, 6, 4)
    assert "stacked" in {choice.method for choice in spec.estimators}
    assert spec.interval == "calibrated"


def test_seconds_of_a_selection_count_once_however_many_estimates_stand_on_it():
    rows = [
        {"split": "a", "repeat": 0, "fold": 0, "draw": 0, "selector": selector, "budget": 10.0, "estimator": estimator}
        for selector in ("random", "anchor-irt")
        for estimator in ("weighted", "gp-irt", "p-irt")
        for _ in range(5)  # models
    ]
    table = pl.DataFrame(rows).with_columns(
        seconds_calibrate=pl.lit(7.0), seconds_select=pl.lit(2.0), seconds_estimate=pl.lit(0.5)
    )
    assert spent(table) == {"calibrate": 7.0, "select": 4.0, "estimate": 3.0}


def test_shared_work_is_done_once_a_fold_and_the_parts_make_the_whole():
    spec = make_spec(estimators=("weighted", "gp-irt", "stacked"), repeats=1)
    found = {name: (seconds, calls) for name, seconds, calls in profile(spec, make_responses())}
    calibration, fits, selections, own, _, estimates = (found[part][1] for part in PARTS)
    assert (calibration, fits) == (1, 1)
    assert selections == 2 * 2  # selectors x sizes
    assert own == 2 * 10  # sizes of anchor-irt x folds of few models, whatever the number of estimators
    assert estimates == 2 * 2 * 3
    assert all(seconds >= 0.0 for seconds, _ in found.values())
    parts = sum(seconds for name, (seconds, _) in found.items() if name != "whole")
    assert parts == pytest.approx(found["whole"][0])
