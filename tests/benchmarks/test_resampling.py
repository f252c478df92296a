import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from benchmarks.resampling import DRAWS, IntervalQuality, clopper_pearson, geometric_mean, mean_error


def table_of(errors, model_ids=None):
    """One row for each error, in points, of estimates of scores of one half."""
    ids = model_ids or [f"m{number:03d}" for number in range(len(errors))]
    return pl.DataFrame({"model_id": ids, "truth": 0.5, "estimate": 0.5 + np.asarray(errors) / 100.0})


def test_standard_errors_are_those_of_a_mean_over_models_and_cancel_in_ratios():
    errors = np.random.default_rng(0).exponential(2.0, 80)
    found = mean_error(table_of(errors))
    assert found.value == pytest.approx(errors.mean())
    expected = errors.std() / 80**0.5
    assert found.error == pytest.approx(expected, rel=4.0 / (2 * DRAWS) ** 0.5)
    errors = np.random.default_rng(1).exponential(2.0, 30)
    once, often = table_of(errors), table_of(np.tile(errors, 10), [f"m{number:03d}" for number in range(30)] * 10)
    assert mean_error(often).value == pytest.approx(mean_error(once).value)
    assert mean_error(often).error == pytest.approx(mean_error(once).error)
    errors = np.random.default_rng(2).exponential(2.0, 50)
    ratio = mean_error(table_of(0.7 * errors)) / mean_error(table_of(errors))
    assert ratio.value == pytest.approx(0.7)
    assert ratio.error == pytest.approx(0.0, abs=1e-12)
    assert str(ratio) == "0.70 ± 0.00"


def test_the_geometric_mean_is_surer_than_its_cells():
    rng = np.random.default_rng(3)
    pairs = [[table_of(rng.exponential(mean, 60)) for mean in (1.0, 2.0)] for _ in range(9)]
    cells = [mean_error(one, seed) / mean_error(other, seed) for seed, (one, other) in enumerate(pairs)]
    mean = geometric_mean(cells)
    assert mean.value == pytest.approx(np.prod([cell.value for cell in cells]) ** (1 / 9))
    relative = np.mean([(cell.error / cell.value) ** 2 for cell in cells]) ** 0.5
    assert mean.error / mean.value == pytest.approx(relative / 3.0, rel=0.15)


@pytest.mark.parametrize(("n_held", "n"), [(0, 12), (7, 12), (12, 12), (95, 100)])
def test_intervals_of_shares_are_clopper_and_pearsons(n_held, n):
    other = binomtest(n_held, n).proportion_ci(0.95, method="exact")
    assert clopper_pearson(n_held, n) == pytest.approx((other.low, other.high))


def test_interval_quality_by_hand():
    columns = {"truth": [0.50, 0.50, 0.60, 0.70], "estimate": [0.52, 0.49, 0.60, 0.60]}
    columns |= {"low": [0.48, 0.45, 0.56, 0.55], "high": [0.56, 0.53, 0.64, 0.65]}
    found = IntervalQuality.of(pl.DataFrame({"model_id": ["a", "a", "b", "c"], **columns}))
    assert (found.n_estimates, found.n_models, found.coverage) == (4, 3, 0.75)
    assert found.error == pytest.approx((2.0 + 1.0 + 0.0 + 10.0) / 4)
    assert found.half_width == pytest.approx((4.0 + 4.0 + 4.0 + 5.0) / 4)
    assert found.winkler == pytest.approx((8.0 + 8.0 + 8.0 + 10.0 + 40.0 * 5.0) / 4)
    assert (found.low, found.high) == pytest.approx(clopper_pearson(0.75 * 3, 3))
