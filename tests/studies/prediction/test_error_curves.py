import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank_studies.prediction import error_curves as kernel
from tests.studies.prediction.simulated import CHEAP, RANDOM, STATIC, C, R, S, make_spec, tables_of


def test_costs_between_budgets_are_logarithmic_on_the_closest_falling_curve():
    mae, cost = np.array([0.3, 0.2, 0.1]), np.array([10.0, 100.0, 400.0])
    assert kernel.cost_at(mae, cost, 0.25) == pytest.approx(np.sqrt(10.0 * 100.0))
    assert kernel.cost_at(mae, cost, 0.2) == pytest.approx(100.0)
    assert kernel.cost_at(mae, cost, 0.15) == pytest.approx(200.0)
    assert kernel.cost_at(mae, cost, 0.5) == 10.0
    assert np.isnan(kernel.cost_at(mae, cost, 0.05))
    assert kernel.mae_at(mae, cost, np.sqrt(1000.0)) == pytest.approx(0.25)
    assert kernel.mae_at(mae, cost, 400.0) == pytest.approx(0.1)
    assert np.isnan(kernel.mae_at(mae, cost, 401.0))
    assert np.isnan(kernel.mae_at(mae, cost, 9.0))
    for level in (0.12, 0.18, 0.22):
        assert kernel.mae_at(mae, cost, kernel.cost_at(mae, cost, level)) == pytest.approx(level)
    np.testing.assert_allclose(kernel.falling(np.array([0.3, 0.1, 0.2, 0.05])), [0.3, 0.15, 0.15, 0.05])
    np.testing.assert_allclose(kernel.falling(np.array([0.3, 0.2, 0.1])), [0.3, 0.2, 0.1])


def test_costs_of_reaching_errors_and_errors_at_a_cost_by_hand():
    spec = make_spec(RANDOM, STATIC, CHEAP, levels=(0.2,), n_items=(1, 16))
    errors = {(R, 1): [0.3], (R, 16): [0.1], (S, 1): [0.3], (S, 16): [0.1]}
    errors |= {(C, 1): [0.3], (C, 16): [0.1]}
    costs = {(R, 1): [100.0], (R, 16): [1600.0], (S, 1): [50.0], (S, 16): [800.0]}
    costs |= {(C, 1): [10.0], (C, 16): [160.0]}
    found = kernel.costs_to_reach(kernel.sum_errors(*tables_of(errors, costs)), spec)
    rows = {(row["level"], row["assessor"]): row for row in found.to_dicts()}
    assert {level for level, _ in rows} == {"20 points", "reference at 16"}
    assert rows["20 points", R]["cost"] == pytest.approx(400.0)  # half way from 100 to 1600
    assert rows["20 points", C]["cost"] == pytest.approx(40.0)
    assert rows["20 points", C]["ratio"] == pytest.approx(0.2)  # of 200, what it costs without the division
    assert rows["20 points", C]["ratio_to_reference"] == pytest.approx(0.1)
    assert np.isnan(rows["20 points", S]["ratio"])
    assert rows["20 points", S]["ratio_to_reference"] == pytest.approx(0.5)
    assert rows["reference at 16", R]["mae"] == pytest.approx(0.1)
    assert rows["reference at 16", C]["cost"] == pytest.approx(160.0)
    assert all(np.isnan(row["cost_se"]) for row in rows.values())  # one partition
    spec = make_spec(RANDOM, CHEAP, n_items=(1, 16))
    errors = {(R, 1): [0.3], (R, 16): [0.2], (C, 1): [0.3], (C, 16): [0.1], (C, 64): [0.05]}
    costs = {(R, 1): [100.0], (R, 16): [200.0], (C, 1): [50.0], (C, 16): [100.0], (C, 64): [400.0]}
    found = kernel.errors_at_cost(kernel.sum_errors(*tables_of(errors, costs)), spec)
    rows = {row["assessor"]: row for row in found.to_dicts()}
    assert rows[R]["reference_budget"] == 16
    assert rows[R]["cost"] == 200.0
    assert rows[R]["mae"] == pytest.approx(0.2)
    assert rows[C]["mae"] == pytest.approx(0.075)  # half way from 100 to 400


def test_standard_errors_of_costs_are_by_leaving_partitions_out():
    spec = make_spec(RANDOM, CHEAP, levels=(0.2,), n_items=(1, 16))
    errors = {(R, 1): [0.3, 0.32, 0.29], (R, 16): [0.1, 0.12, 0.14]}
    errors |= {(C, 1): [0.28, 0.3, 0.31], (C, 16): [0.1, 0.1, 0.11]}
    costs = {
        key: [base * one for one in (1.0, 1.1, 0.8)] for key, base in zip(errors, (100, 1600, 10, 160), strict=True)
    }
    found = kernel.costs_to_reach(kernel.sum_errors(*tables_of(errors, costs)), spec)
    row = found.filter(level="20 points", assessor=C).row(0, named=True)

    def ratio(kept):
        spent = []
        for assessor in (C, R):
            mae = [np.mean([errors[assessor, n][k] for k in kept]) for n in (1, 16)]
            cost = [np.mean([costs[assessor, n][k] for k in kept]) for n in (1, 16)]
            spent.append(kernel.cost_at(np.array(mae), np.array(cost), 0.2))
        return spent[0] / spent[1]

    left_out = np.array([ratio(kept) for kept in ((1, 2), (0, 2), (0, 1))])
    assert row["ratio_to_reference"] == pytest.approx(ratio((0, 1, 2)))
    expected = np.sqrt(2.0 / 3.0 * np.sum((left_out - left_out.mean()) ** 2))
    assert row["ratio_to_reference_se"] == pytest.approx(expected)


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
    curves = kernel.summarise_curves(kernel.sum_errors(predictions.lazy(), runs.lazy()))
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


def test_differences_are_of_the_same_partitions_and_pairs_are_compared_task_by_task():
    errors = {(R, 4): [0.3, 0.2, 0.1], (S, 4): [0.2, 0.12, 0.03]}
    costs = {key: [1.0, 1.0, 1.0] for key in errors}
    found = kernel.differences(kernel.sum_errors(*tables_of(errors, costs)), R)
    assert found.height == 1
    row = found.row(0, named=True)
    each = np.array([-0.1, -0.08, -0.07])
    assert row["difference"] == pytest.approx(each.mean())
    assert row["difference_se"] == pytest.approx(each.std(ddof=1) / np.sqrt(3))
    assert row["ratio"] == pytest.approx(0.35 / 0.6)
    with pytest.raises(ParameterError, match=r"the reference must be one of .* got 'x'"):
        kernel.differences(kernel.sum_errors(*tables_of(errors, costs)), "x")
    predictions, _ = tables_of({(R, 4): [0.3, 0.1], (S, 4): [0.1, 0.1]}, {(R, 4): [1, 1], (S, 4): [1, 1]})
    other = predictions.with_columns(task=pl.lit("u"), truth=pl.lit(0.4))  # errs by 0.1 more
    both = pl.concat([predictions, other])
    pair = (R, S)
    found = kernel.errors_by(both, "task", pair, n_tasks=2, which="extrapolation", budget=4)
    assert found["name"].to_list() == ["t", "u"]
    np.testing.assert_allclose(found["first"], [0.2, 0.3])
    np.testing.assert_allclose(found["second"], [0.1, 0.2])
    np.testing.assert_allclose(found["difference"], [0.1, 0.1])
    np.testing.assert_allclose(found["difference_se"], [0.1, 0.1])  # of 0.2 and 0: standard deviation over root 2
    assert kernel.errors_by(both, "task", pair, n_tasks=2, which="interpolation", budget=4).is_empty()
