import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.pages.shown import show
from itembank_studies.charts.study_charts import IN_COLOUR, KINDS, OTHERS, study_chart
from itembank_studies.engine import StudyManifest
from itembank_studies.results import StudyResult
from itembank_studies.summary import summarise
from tests.pages.reading import check_chart, check_charts, columns_of

METHODS = (("random", "weighted"), ("random", "gp-irt"), ("anchor-irt", "gp-irt"))


def make_estimates(*, splits=("k-fold", "$newest_models"), methods=METHODS, budgets=(30.0, 100.0), n_models=22):
    """Errors that shrink with the number of items."""
    rng = np.random.default_rng(0)
    parts = []
    for split in splits:
        for selector, estimator in methods:
            for budget in budgets:
                for repeat in range(2):
                    truth = rng.random(n_models)
                    estimate = truth + rng.normal(size=n_models) / (4.0 * np.sqrt(budget))
                    parts.append(
                        pl.DataFrame({"truth": truth, "estimate": estimate}).with_columns(
                            split=pl.lit(split),
                            selector=pl.lit(selector),
                            estimator=pl.lit(estimator),
                            budget=budget,
                            n_items=int(budget),
                            repeat=repeat,
                            model_id=pl.Series([f"m{m}" for m in range(n_models)]),
                        )
                    )
    numbers = ("cost", "effective_items", "n_calibration", "seconds_calibrate", "seconds_select", "seconds_estimate")
    table = pl.concat(parts).with_columns(fold=0, draw=0, target=pl.lit("overall"))
    return table.with_columns(
        *(pl.lit(1.0).alias(name) for name in numbers), low=pl.col("estimate") - 0.05, high=pl.col("estimate") + 0.05
    )


def study(estimates, name="study", **choices):
    """A finished study of these estimates."""
    spec = {"name": name, "level": 0.95, "budget": None, "data": {"responses": ["/home/me/past.csv"]}, **choices}
    manifest = StudyManifest("comparison", spec, "f" * 64, "d" * 64, {"itembank": "1"}, 0, 4, 22, 200)
    return StudyResult(estimates.with_columns(failure=pl.lit("")), summarise(estimates), manifest)


ESTIMATES = make_estimates()
RESULT = study(ESTIMATES)


@pytest.mark.parametrize(
    ("kind", "column", "metric", "scale"),
    [
        ("error", "error", "mae", 100.0),
        ("rank", "spearman", "spearman", 1.0),
        ("coverage", "coverage", "coverage", 1.0),
        ("width", "half_width", "half_width", 100.0),
    ],
)
def test_curves_are_the_metric_by_size(kind, column, metric, scale, tmp_path):
    chart = study_chart(RESULT, kind)
    data = pl.DataFrame({name: list(values) for name, values in columns_of(chart).items()})
    for selector, estimator in METHODS:
        rows = RESULT.summary.filter(split="$newest_models", selector=selector, estimator=estimator).sort("budget")
        drawn = data.filter(split="$newest_models", method=f"{selector} × {estimator}")
        np.testing.assert_allclose(drawn.select("size", column), rows.select("budget", scale * pl.col(metric)))
        np.testing.assert_allclose(drawn["error_high"] - drawn["error"], 100.0 * rows["mae_se"])
    assert chart.save(tmp_path / "study.png").stat().st_size > 5_000
    check_chart(chart)


def test_spread_shows_every_model_at_one_size():
    chart = study_chart(RESULT, "spread", size=30.0)
    data = pl.DataFrame({name: list(values) for name, values in columns_of(chart).items()}).filter(split="k-fold")
    selector, _, estimator = data["method"][0].split()
    part = ESTIMATES.filter(split="k-fold", selector=selector, estimator=estimator, budget=30.0)
    expected = part.group_by("model_id").agg(
        x=pl.col("truth").mean(), y=100.0 * (pl.col("estimate") - pl.col("truth")).mean()
    )
    np.testing.assert_allclose(np.sort(data["truth"]), np.sort(expected["x"]))
    np.testing.assert_allclose(np.sort(data["error"]), np.sort(expected["y"]))
    assert "with 30 items" in chart.title
    assert "with 100 items" in study_chart(RESULT, "spread").title


def test_one_repeat_and_methods_without_estimates_can_be_drawn():
    once = ESTIMATES.filter(repeat=0).with_columns(
        estimate=pl.when(pl.col("estimator") == "weighted").then(float("nan")).otherwise("estimate")
    )
    for kind in KINDS:
        drawn = study_chart(study(once), kind)
        check_chart(drawn)
        assert "Bars" not in drawn.note


def test_of_many_methods_the_best_have_colours():
    many = tuple((f"s{k}", "weighted") for k in range(IN_COLOUR + 4))
    chart = study_chart(study(make_estimates(splits=("random",), methods=many)), "error")
    shades = set(chart.data[0].columns["shade"])
    assert len(shades) == IN_COLOUR + 1
    assert OTHERS in shades
    assert "4 others in grey" in chart.note


def test_the_page_has_the_charts_that_there_are_numbers_for():
    name = "<script>alert(1)</script>"
    page = show(study(make_estimates(splits=("random", name)), name=name))
    assert len(page.charts) == len(KINDS)
    check_charts(page, name)
    table = make_estimates(splits=("random",), methods=METHODS[:1], budgets=(30.0,), n_models=3).filter(repeat=0)
    page = show(study(table.with_columns(low=pl.lit(np.nan), high=pl.lit(np.nan))))
    assert not any("Intervals" in chart.title for chart in page.charts)
    check_charts(page)


def test_what_cannot_be_drawn_says_why():
    with pytest.raises(ParameterError, match="'error', 'rank', 'coverage', 'width', 'spread', got 'bars'"):
        study_chart(RESULT, "bars")
    nothing = ESTIMATES.with_columns(estimate=float("nan"))
    with pytest.raises(ParameterError, match="every one of them failed"):
        study_chart(study(nothing), "error")
