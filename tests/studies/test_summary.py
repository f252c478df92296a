import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau, spearmanr

from itembank.errors import ParameterError
from itembank_studies import summary as kernel


@pytest.mark.parametrize("digits", [8, 1], ids=["no ties", "many ties"])
def test_rank_correlations_are_scipy_s(rng, digits):
    truth, estimates = np.round(rng.random((2, 20, 30)), digits)
    expected = [spearmanr(one, other).statistic for one, other in zip(truth, estimates, strict=True)]
    np.testing.assert_allclose(kernel.spearman(truth, estimates), expected, atol=1e-12)
    for one, other in zip(truth, estimates, strict=True):
        assert kernel.pair_agreement(one, other)[0] == pytest.approx(kendalltau(one, other).statistic, abs=1e-12)


def test_rank_correlations_with_ties_and_clustered_means_by_hand(rng):
    equal, rising = np.full(4, 0.5), np.arange(4) / 4
    assert np.isnan(kernel.spearman(equal[None], rising[None])[0])
    assert np.isnan(kernel.pair_agreement(rising, equal)[0])
    assert np.isnan(kernel.pair_agreement(equal, rising)).all()
    truth = np.array([0.3, 0.1 + 0.2, 0.9])
    assert truth[0] != truth[1]
    assert kernel.pair_agreement(truth, np.array([0.2, 0.1, 0.8])) == (pytest.approx(2 / np.sqrt(2 * 3)), 1.0)
    # True order a < b < c = d. Pairs that differ: ab right, ac tied, ad right, bc wrong, bd right.
    _, share = kernel.pair_agreement(np.array([0.1, 0.2, 0.3, 0.3]), np.array([0.1, 0.3, 0.1, 0.4]))
    assert share == pytest.approx((1 + 0.5 + 1 + 0 + 1) / 5)
    values = rng.normal(size=(7, 5))
    mean, error = kernel.clustered_mean(values.ravel(), np.repeat(np.arange(7), 5))
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.mean(axis=1).std(ddof=1) / np.sqrt(7))
    # Clusters (1, 3) and (5): mean 3, residuals 4 - 6 = -2 and 5 - 3 = 2; SE^2 = 2/1 (4 + 4) / 9.
    mean, error = kernel.clustered_mean(np.array([1.0, 3.0, 5.0]), np.array([4, 4, 9]))
    assert (mean, error) == (3.0, pytest.approx(np.sqrt(16) / 3))
    assert np.isnan(kernel.clustered_mean(np.ones(3), np.zeros(3, dtype=int))[1])
    assert np.isnan(kernel.clustered_mean(np.ones(0), np.zeros(0, dtype=int))).all()


def test_clustered_errors_are_those_of_repetition(rng):
    # Values that share an effect of their cluster: over many data sets the mean spreads as the error says.
    cluster = np.repeat(np.arange(12), 4)
    found = [kernel.clustered_mean(rng.normal(size=12)[cluster] + rng.normal(size=48), cluster) for _ in range(2000)]
    means, errors = np.array(found).T
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(means.std(), rel=0.05)
    cluster = np.repeat(np.arange(20), 5)
    found = []
    for _ in range(2000):
        hard = rng.gamma(4.0, size=20)[cluster]  # what makes both errors large
        found.append(
            kernel.clustered_ratio(0.7 * hard * rng.gamma(9.0, size=100), hard * rng.gamma(9.0, size=100), cluster)
        )
    ratios, errors = np.array(found).T
    assert ratios.mean() == pytest.approx(0.7, abs=0.003)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(ratios.std(), rel=0.08)


def test_the_ratio_of_paired_values_and_coverage_by_hand():
    # Sums of clusters (3, 4) and (5, 2): ratio 8/6; residuals 3 - 16/3, 5 - 8/3; SE^2 = 2 (49/9 + 49/9) / 36.
    first, second = np.array([1.0, 2.0, 5.0]), np.array([1.0, 3.0, 2.0])
    ratio, error = kernel.clustered_ratio(first, second, np.array([0, 0, 1]))
    assert (ratio, error) == (pytest.approx(8 / 6), pytest.approx(np.sqrt(2 * 98 / 9) / 6))
    assert np.isnan(kernel.clustered_ratio(first, second, np.zeros(3, dtype=int))[1])
    assert np.isnan(kernel.clustered_ratio(first, np.zeros(3), np.arange(3))).all()
    truth = np.array([0.1, 0.2, 0.3, np.nextafter(0.4, 1.0), 0.41])
    low, high = np.array([0.1, 0.1, 0.31, 0.3, 0.3]), np.array([0.2, 0.2, 0.4, 0.4, 0.4])
    assert kernel.is_covered(truth, low, high).tolist() == [True, True, False, True, False]


def test_ratios_are_those_of_the_mean_errors_of_the_same_model_and_draw_if_both_have_an_estimate():
    ratios = kernel.error_ratios(TABLE, "random", "fair")
    mae = {row["estimator"]: row["mae"] for row in kernel.summarise(TABLE).to_dicts()}
    found = {row["estimator"]: row for row in ratios.to_dicts()}
    assert found["high"]["ratio"] == pytest.approx(mae["high"] / mae["fair"])
    assert (found["fair"]["ratio"], found["fair"]["ratio_se"]) == (1.0, 0.0)
    assert found["high"]["n_pairs"] == 300
    assert found["high"]["ratio_se"] > 0.0
    shuffled = TABLE.sample(fraction=1.0, shuffle=True, seed=2)
    one, other = (kernel.error_ratios(table, "random", "fair").sort("estimator") for table in (TABLE, shuffled))
    np.testing.assert_allclose(one["ratio_se"].to_numpy(), other["ratio_se"].to_numpy(), atol=1e-12)
    with pytest.raises(ParameterError, match="'random fair', 'random high'; got 'random best'"):
        kernel.error_ratios(TABLE, "random", "best")
    is_missing = (pl.col("model_id") == "m3") & (pl.col("estimator") == "fair")
    missing = TABLE.with_columns(estimate=pl.when(is_missing).then(float("nan")).otherwise("estimate"))
    found = kernel.error_ratios(missing, "random", "fair").filter(estimator="high").row(0, named=True)
    whole = kernel.error_ratios(TABLE.filter(pl.col("model_id") != "m3"), "random", "fair").filter(estimator="high")
    assert found["n_pairs"] == 288
    assert found["ratio"] == pytest.approx(whole["ratio"][0])
    columns = {"target": ["overall"] * 4, "selector": ["a", "a", "b", "b"], "estimator": ["x"] * 4}
    ratios = pl.DataFrame({**columns, "ratio": [0.5, 2.0, 0.5, 0.125]})
    assert kernel.geometric_mean(ratios)["ratio"].to_list() == pytest.approx([1.0, 0.25])


def estimates(*, n_models=25, n_repeats=3, n_folds=2, n_draws=2, seed=0):
    """A study's estimates, made up: two methods of which the second is always a tenth too high."""
    rng = np.random.default_rng(seed)
    rows = []
    for repeat in range(n_repeats):
        for fold in range(n_folds):
            truth = rng.random(n_models)
            for draw in range(n_draws):
                noise = 0.05 * rng.normal(size=n_models)
                for estimator, shift in (("fair", 0.0), ("high", 0.1)):
                    value = truth + noise + shift
                    rows += [
                        (repeat, fold, draw, estimator, f"m{m}", truth[m], value[m], value[m] - 0.1, value[m] + 0.1)
                        for m in range(n_models)
                    ]
    names = ["repeat", "fold", "draw", "estimator", "model_id", "truth", "estimate", "low", "high"]
    same = {"split": "k-fold", "selector": "random", "budget": 30.0, "target": "overall", "n_items": 30, "cost": 7.0}
    same |= {"effective_items": 25.0, "n_calibration": 75, "seconds_calibrate": 1.0, "seconds_select": 0.5}
    same |= {"seconds_estimate": 0.25}
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.lit(v).alias(k) for k, v in same.items())


TABLE = estimates()


def row_of(table, **values):
    (row,) = kernel.summarise(table).filter(**values).to_dicts()
    return row


@pytest.mark.parametrize("estimator", ["fair", "high"])
def test_errors_are_those_of_the_estimates(estimator):
    row = row_of(TABLE, estimator=estimator)
    part = TABLE.filter(estimator=estimator)
    error = (part["estimate"] - part["truth"]).to_numpy()
    assert row["mae"] == pytest.approx(np.abs(error).mean())
    assert row["bias"] == pytest.approx(error.mean())
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert row["p95"] == pytest.approx(np.percentile(np.abs(error), 95))
    assert row["worst"] == np.abs(error).max()
    assert row["coverage"] == pytest.approx(np.mean(np.abs(error) <= 0.1), abs=1e-9)
    assert row["half_width"] == pytest.approx(0.1)
    assert row["half_width_over_p95"] == pytest.approx(0.1 / row["p95"])
    assert row["n_estimates"] == 300
    by_repeat = [np.abs(error)[part["repeat"].to_numpy() == repeat].mean() for repeat in range(3)]
    assert row["mae_se"] == pytest.approx(np.std(by_repeat, ddof=1) / np.sqrt(3))


def test_a_shift_is_bias_one_repeat_has_no_standard_error_and_missing_estimates_are_counted_apart():
    fair, high = row_of(TABLE, estimator="fair"), row_of(TABLE, estimator="high")
    assert high["bias"] - fair["bias"] == pytest.approx(0.1)
    for name in ("spearman", "kendall", "pair_accuracy"):
        assert high[name] == pytest.approx(fair[name])
    table = estimates(n_models=1, n_folds=30)
    assert 0.9 < row_of(table, estimator="fair")["spearman"] < 1.0
    row = row_of(estimates(n_repeats=1), estimator="fair")
    assert np.isnan([row[name] for name in ("mae_se", "spearman_se", "coverage_se")]).all()
    table = TABLE.with_columns(estimate=pl.when(pl.col("model_id") == "m3").then(float("nan")).otherwise("estimate"))
    row, whole = row_of(table, estimator="fair"), row_of(TABLE.filter(pl.col("model_id") != "m3"), estimator="fair")
    assert (row["n_estimates"], row["n_without"]) == (288, 12)
    for name in ("mae", "mae_se", "spearman", "coverage", "p95"):
        assert row[name] == pytest.approx(whole[name])
    nothing = row_of(TABLE.with_columns(estimate=pl.lit(float("nan"))), estimator="fair")
    assert np.isnan([nothing[name] for name in ("mae", "p95", "worst", "spearman", "coverage", "half_width")]).all()


def test_large_folds_are_ranked_by_themselves_and_small_ones_together():
    for fewer, keys in ((0, ["repeat", "fold", "draw"]), (1, ["repeat", "draw"])):
        n_models = kernel.POOL_BELOW - fewer
        table = estimates(n_models=n_models)
        parts = table.filter(estimator="fair").partition_by(keys)
        assert len(parts) == (12 if "fold" in keys else 6)
        row = row_of(table, estimator="fair")
        rho = [spearmanr(part["truth"], part["estimate"]).statistic for part in parts]
        tau = [kendalltau(part["truth"], part["estimate"]).statistic for part in parts]
        assert row["spearman"] == pytest.approx(np.mean(rho))
        assert row["kendall"] == pytest.approx(np.mean(tau))
        assert row["pair_accuracy"] == pytest.approx(0.5 + 0.5 * np.mean(tau))  # nothing is tied


def test_every_cell_and_metric_has_its_place_whatever_the_order_of_rows():
    summary = kernel.summarise(TABLE)
    assert summary.height == 2
    assert set(kernel.CELL) | set(kernel.METRICS) <= set(summary.columns)
    for name, value in {"cost": 7.0, "effective_items": 25.0, "seconds_select": 0.5, "n_items": 30.0}.items():
        assert (summary[name] == value).all()
    shuffled = TABLE.sample(fraction=1.0, shuffle=True, seed=1)
    first, second = (kernel.summarise(one).sort("estimator").drop(kernel.CELL) for one in (TABLE, shuffled))
    np.testing.assert_allclose(first.to_numpy().astype(float), second.to_numpy().astype(float), atol=1e-12)
