import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.studies.ratios import error_ratios, geometric_mean
from itembank.studies.summary import summarise
from tests.studies.test_summary import estimates

TABLE = estimates()


def test_ratios_are_those_of_the_mean_errors():
    ratios = error_ratios(TABLE, "random", "fair")
    mae = {row["estimator"]: row["mae"] for row in summarise(TABLE).to_dicts()}
    found = {row["estimator"]: row for row in ratios.to_dicts()}
    assert found["high"]["ratio"] == pytest.approx(mae["high"] / mae["fair"])
    assert (found["fair"]["ratio"], found["fair"]["ratio_se"]) == (1.0, 0.0)
    assert found["high"]["n_pairs"] == 300
    assert found["high"]["ratio_se"] > 0.0


def test_pairs_are_of_the_same_model_and_draw_whatever_the_order():
    shuffled = TABLE.sample(fraction=1.0, shuffle=True, seed=2)
    one, other = (error_ratios(table, "random", "fair").sort("estimator") for table in (TABLE, shuffled))
    np.testing.assert_allclose(one["ratio_se"].to_numpy(), other["ratio_se"].to_numpy(), atol=1e-12)


def test_models_without_an_estimate_by_either_are_left_out():
    missing = TABLE.with_columns(
        estimate=pl.when((pl.col("model_id") == "m3") & (pl.col("estimator") == "fair"))
        .then(float("nan"))
        .otherwise("estimate")
    )
    found = error_ratios(missing, "random", "fair").filter(estimator="high").row(0, named=True)
    whole = error_ratios(TABLE.filter(pl.col("model_id") != "m3"), "random", "fair").filter(estimator="high")
    assert found["n_pairs"] == 288
    assert found["ratio"] == pytest.approx(whole["ratio"][0])


def test_the_geometric_mean_is_over_splits_and_sizes():
    ratios = pl.DataFrame(
        {
            "target": ["overall"] * 4,
            "selector": ["a", "a", "b", "b"],
            "estimator": ["x"] * 4,
            "ratio": [0.5, 2.0, 0.5, 0.125],
        }
    )
    assert geometric_mean(ratios)["ratio"].to_list() == pytest.approx([1.0, 0.25])


def test_a_reference_that_is_not_there_says_what_is():
    with pytest.raises(ParameterError, match="'random fair', 'random high'; got 'random best'"):
        error_ratios(TABLE, "random", "best")
