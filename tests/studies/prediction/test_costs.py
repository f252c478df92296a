import numpy as np
import pytest

from itembank.studies.prediction.costs import cost_at, costs_to_reach, errors_at_cost, falling, mae_at
from itembank.studies.prediction.error_curves import sum_errors
from tests.studies.prediction.simulated import CHEAP, RANDOM, STATIC, C, R, S, make_spec, tables_of


def test_costs_between_budgets_are_logarithmic():
    mae, cost = np.array([0.3, 0.2, 0.1]), np.array([10.0, 100.0, 400.0])
    assert cost_at(mae, cost, 0.25) == pytest.approx(np.sqrt(10.0 * 100.0))
    assert cost_at(mae, cost, 0.2) == pytest.approx(100.0)
    assert cost_at(mae, cost, 0.15) == pytest.approx(200.0)
    assert cost_at(mae, cost, 0.5) == 10.0
    assert np.isnan(cost_at(mae, cost, 0.05))
    assert mae_at(mae, cost, np.sqrt(1000.0)) == pytest.approx(0.25)
    assert mae_at(mae, cost, 400.0) == pytest.approx(0.1)
    assert np.isnan(mae_at(mae, cost, 401.0))
    assert np.isnan(mae_at(mae, cost, 9.0))
    for level in (0.12, 0.18, 0.22):
        assert mae_at(mae, cost, cost_at(mae, cost, level)) == pytest.approx(level)


def test_a_falling_curve_is_the_closest_one():
    np.testing.assert_allclose(falling(np.array([0.3, 0.1, 0.2, 0.05])), [0.3, 0.15, 0.15, 0.05])
    np.testing.assert_allclose(falling(np.array([0.3, 0.2, 0.1])), [0.3, 0.2, 0.1])


def test_costs_of_reaching_errors_by_hand():
    spec = make_spec(RANDOM, STATIC, CHEAP, levels=(0.2,), n_items=(1, 16))
    errors = {(R, 1): [0.3], (R, 16): [0.1], (S, 1): [0.3], (S, 16): [0.1]}
    errors |= {(C, 1): [0.3], (C, 16): [0.1]}
    costs = {(R, 1): [100.0], (R, 16): [1600.0], (S, 1): [50.0], (S, 16): [800.0]}
    costs |= {(C, 1): [10.0], (C, 16): [160.0]}
    found = costs_to_reach(sum_errors(*tables_of(errors, costs)), spec)
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


def test_errors_at_a_cost_by_hand():
    spec = make_spec(RANDOM, CHEAP, n_items=(1, 16))
    errors = {(R, 1): [0.3], (R, 16): [0.2], (C, 1): [0.3], (C, 16): [0.1], (C, 64): [0.05]}
    costs = {(R, 1): [100.0], (R, 16): [200.0], (C, 1): [50.0], (C, 16): [100.0], (C, 64): [400.0]}
    found = errors_at_cost(sum_errors(*tables_of(errors, costs)), spec)
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
    found = costs_to_reach(sum_errors(*tables_of(errors, costs)), spec)
    row = found.filter(level="20 points", assessor=C).row(0, named=True)

    def ratio(kept):
        spent = []
        for assessor in (C, R):
            mae = [np.mean([errors[assessor, n][k] for k in kept]) for n in (1, 16)]
            cost = [np.mean([costs[assessor, n][k] for k in kept]) for n in (1, 16)]
            spent.append(cost_at(np.array(mae), np.array(cost), 0.2))
        return spent[0] / spent[1]

    left_out = np.array([ratio(kept) for kept in ((1, 2), (0, 2), (0, 1))])
    assert row["ratio_to_reference"] == pytest.approx(ratio((0, 1, 2)))
    expected = np.sqrt(2.0 / 3.0 * np.sum((left_out - left_out.mean()) ** 2))
    assert row["ratio_to_reference_se"] == pytest.approx(expected)
