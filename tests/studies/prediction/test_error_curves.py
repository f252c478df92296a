import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.studies.prediction.error_curves import differences, errors_by, sum_errors, summarise_curves
from tests.studies.prediction.simulated import R, S, tables_of


def test_the_mean_absolute_error_by_hand():
    """Two partitions, models m and n, tasks t and u of extrapolation and v of interpolation; n has no truth on u."""
    rows = [
        (0, "m", "t", False, 0.5, 0.6),
        (0, "m", "u", False, 0.5, 0.3),
        (0, "m", "v", True, 0.5, 0.5),
        (0, "n", "t", False, 0.2, 0.3),
        (0, "n", "u", False, np.nan, 0.3),
        (0, "n", "v", True, 0.1, 0.4),
        (1, "m", "t", False, 0.5, 0.1),
        (1, "m", "v", True, 1.0, 0.9),
    ]
    columns = ["partition", "model_id", "task", "is_interpolation", "truth", "prediction"]
    cell = [pl.lit(1).alias("n_calibration_tasks"), pl.lit("a").alias("assessor"), pl.lit(4).alias("budget")]
    predictions = pl.DataFrame(rows, schema=columns, orient="row").with_columns(cell)
    runs = pl.DataFrame({"partition": [0, 0, 1], "n_items": [4, 4, 3], "cost": [10.0, 20.0, 30.0]}).with_columns(cell)
    curves = summarise_curves(sum_errors(predictions.lazy(), runs.lazy()))
    inside, outside = (curves.row(k, named=True) for k in (0, 1))
    assert (inside["set"], outside["set"]) == ("interpolation", "extrapolation")
    assert outside["mae"] == pytest.approx((0.1 + 0.2 + 0.1 + 0.4) / 4)
    assert outside["bias"] == pytest.approx((0.1 - 0.2 + 0.1 - 0.4) / 4)
    assert inside["mae"] == pytest.approx((0.0 + 0.3 + 0.1) / 3)
    # ratio r = 0.2 of sums (0.4, 0.4) and counts (3, 1): residuals -0.2 and 0.2, SE = sqrt(2 * 0.08) / 4
    assert outside["mae_se"] == pytest.approx(np.sqrt(2 * 0.08) / 4)
    assert outside["cost"] == pytest.approx(22.5)  # partitions weigh the same
    assert outside["n_items"] == pytest.approx(3.5)
    assert outside["n_partitions"] == 2


def test_differences_are_of_the_same_partitions():
    errors = {(R, 4): [0.3, 0.2, 0.1], (S, 4): [0.2, 0.12, 0.03]}
    costs = {key: [1.0, 1.0, 1.0] for key in errors}
    found = differences(sum_errors(*tables_of(errors, costs)), R)
    assert found.height == 1
    row = found.row(0, named=True)
    each = np.array([-0.1, -0.08, -0.07])
    assert row["difference"] == pytest.approx(each.mean())
    assert row["difference_se"] == pytest.approx(each.std(ddof=1) / np.sqrt(3))
    assert row["ratio"] == pytest.approx(0.35 / 0.6)
    with pytest.raises(ParameterError, match=r"the reference must be one of .* got 'x'"):
        differences(sum_errors(*tables_of(errors, costs)), "x")


def test_two_assessors_are_compared_task_by_task():
    predictions, _ = tables_of({(R, 4): [0.3, 0.1], (S, 4): [0.1, 0.1]}, {(R, 4): [1, 1], (S, 4): [1, 1]})
    other = predictions.with_columns(task=pl.lit("u"), truth=pl.lit(0.4))  # errs by 0.1 more
    both = pl.concat([predictions, other])
    pair = (R, S)
    found = errors_by(both, "task", pair, n_tasks=2, which="extrapolation", budget=4)
    assert found["name"].to_list() == ["t", "u"]
    np.testing.assert_allclose(found["first"], [0.2, 0.3])
    np.testing.assert_allclose(found["second"], [0.1, 0.2])
    np.testing.assert_allclose(found["difference"], [0.1, 0.1])
    np.testing.assert_allclose(found["difference_se"], [0.1, 0.1])  # of 0.2 and 0: standard deviation over root 2
    assert errors_by(both, "task", pair, n_tasks=2, which="interpolation", budget=4).is_empty()
