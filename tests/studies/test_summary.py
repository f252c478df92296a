import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau, spearmanr

from itembank.studies.summary import CELL, METRICS, POOL_BELOW, summarise


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
    table = pl.DataFrame(rows, schema=names, orient="row")
    return table.with_columns(pl.lit(value).alias(name) for name, value in same.items()).with_columns(
        seconds_estimate=pl.lit(0.25)
    )


TABLE = estimates()


def row_of(table, **values):
    (row,) = summarise(table).filter(**values).to_dicts()
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


def test_a_shift_is_bias_and_changes_no_rank():
    fair, high = row_of(TABLE, estimator="fair"), row_of(TABLE, estimator="high")
    assert high["bias"] - fair["bias"] == pytest.approx(0.1)
    for name in ("spearman", "kendall", "pair_accuracy"):
        assert high[name] == pytest.approx(fair[name])


def test_large_folds_are_ranked_by_themselves_and_small_ones_together():
    for n_models, keys in ((POOL_BELOW, ["repeat", "fold", "draw"]), (POOL_BELOW - 1, ["repeat", "draw"])):
        table = estimates(n_models=n_models)
        parts = table.filter(estimator="fair").partition_by(keys)
        assert len(parts) == (12 if "fold" in keys else 6)
        row = row_of(table, estimator="fair")
        rho = [spearmanr(part["truth"], part["estimate"]).statistic for part in parts]
        tau = [kendalltau(part["truth"], part["estimate"]).statistic for part in parts]
        assert row["spearman"] == pytest.approx(np.mean(rho))
        assert row["kendall"] == pytest.approx(np.mean(tau))
        assert row["pair_accuracy"] == pytest.approx(0.5 + 0.5 * np.mean(tau))  # nothing is tied


def test_leaving_one_out_can_be_ranked():
    table = estimates(n_models=1, n_folds=30)
    assert 0.9 < row_of(table, estimator="fair")["spearman"] < 1.0


def test_estimates_that_are_not_there_are_counted_apart():
    table = TABLE.with_columns(estimate=pl.when(pl.col("model_id") == "m3").then(float("nan")).otherwise("estimate"))
    row, whole = row_of(table, estimator="fair"), row_of(TABLE.filter(pl.col("model_id") != "m3"), estimator="fair")
    assert (row["n_estimates"], row["n_without"]) == (288, 12)
    for name in ("mae", "mae_se", "spearman", "coverage", "p95"):
        assert row[name] == pytest.approx(whole[name])
    nothing = row_of(TABLE.with_columns(estimate=pl.lit(float("nan"))), estimator="fair")
    assert np.isnan([nothing[name] for name in ("mae", "p95", "worst", "spearman", "coverage", "half_width")]).all()


def test_one_repeat_has_no_standard_error():
    row = row_of(estimates(n_repeats=1), estimator="fair")
    assert np.isnan([row[name] for name in ("mae_se", "spearman_se", "coverage_se")]).all()


def test_every_cell_and_metric_has_its_place():
    summary = summarise(TABLE)
    assert summary.height == 2
    assert set(CELL) | set(METRICS) <= set(summary.columns)
    for name, value in {"cost": 7.0, "effective_items": 25.0, "seconds_select": 0.5, "n_items": 30.0}.items():
        assert (summary[name] == value).all()


def test_the_order_of_rows_does_not_matter():
    shuffled = TABLE.sample(fraction=1.0, shuffle=True, seed=1)
    first, second = (summarise(one).sort("estimator").drop(CELL) for one in (TABLE, shuffled))
    np.testing.assert_allclose(first.to_numpy().astype(float), second.to_numpy().astype(float), atol=1e-12)
