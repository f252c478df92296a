import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.pages.blocks import Chart
from itembank.pages.study_charts import IN_COLOUR, KINDS, OTHERS, StudyNumbers, study_chart
from itembank.pages.study_page import study_page
from itembank.studies.engine import StudyManifest
from itembank.studies.results import StudyResult
from itembank.studies.summary import summarise
from tests.pages.reading import answers, cautions, check_chart, check_charts, columns_of, lead_text, of_kind

PAYLOAD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def result():
    better = pl.when(pl.col("selector") == "anchor-irt").then(0.2).otherwise(1.0)
    table = make_estimates(splits=("random", PAYLOAD))
    table = table.with_columns(estimate=pl.col("truth") + better * (pl.col("estimate") - pl.col("truth")))
    return study(table, name=PAYLOAD)


@pytest.fixture(scope="module")
def page(result):
    return study_page(result)


def test_the_answer_is_the_method_that_erred_least_on_each_split(result, page):
    least = result.summary.filter(budget=100.0).sort("mae").group_by("split", maintain_order=True).first()
    for answer, split in zip(answers(page), ("random", PAYLOAD), strict=True):
        row = least.filter(split=split).row(0, named=True)
        assert answer.value == f"{100.0 * row['mae']:.2f} points"
        assert "by anchor-irt × gp-irt with 100 items" in answer.words
        assert f"held {100.0 * row['coverage']:.1f} %" in answer.words
    assert lead_text(page).startswith("With 100 items, anchor-irt × gp-irt came closest")
    assert "cannot be told from it" not in lead_text(page)
    check_charts(page, PAYLOAD)


def test_methods_that_err_as_much_are_tied_over_models():
    best = StudyNumbers.of(study(make_estimates(splits=("random",))), "overall").best("random")
    assert best is not None
    assert len(best.tied) == len(METHODS) - 1
    assert best.next_method == ""


def test_intervals_that_are_too_narrow_are_said():
    narrow = make_estimates(splits=("random",)).with_columns(
        low=pl.col("estimate") - 1e-4, high=pl.col("estimate") + 1e-4
    )
    page = study_page(study(narrow))
    assert "95 % intervals" in cautions(page)
    assert "held the truth only" in cautions(page)


def test_of_many_methods_the_best_have_colours():
    many = tuple((f"s{k}", "weighted") for k in range(IN_COLOUR + 4))
    page = study_page(study(make_estimates(splits=("random",), methods=many)))
    chart = next(one for one in of_kind(page, Chart) if "goes from" in one.title)
    shades = set(chart.data[0].columns["shade"])
    assert len(shades) == IN_COLOUR + 1
    assert OTHERS in shades
    assert "4 others in grey" in chart.note
    check_charts(page)


def test_one_repeat_one_size_one_method_and_gaps_can_be_shown():
    table = make_estimates(splits=("random",), methods=METHODS[:1], budgets=(30.0,), n_models=3).filter(repeat=0)
    gaps = table.with_columns(
        low=pl.lit(np.nan),
        high=pl.lit(np.nan),
        estimate=pl.when(pl.col("model_id") == "m1").then(np.nan).otherwise("estimate"),
    )
    page = study_page(study(gaps))
    assert "Intervals" not in [section.title for section in page.sections]
    assert "1 estimate could not be made" in cautions(page)
    check_charts(page)


def test_provenance_names_the_data_without_its_folder(page):
    facts = dict(page.provenance)
    assert facts["Data"].startswith("'past.csv', dddd")
    assert "/home" not in str(page.provenance)


def test_a_target_that_is_not_there_and_a_study_without_estimates_are_refused(result):
    with pytest.raises(ParameterError, match="target must be one of 'overall', got 'gsm8k'"):
        study_page(result, target="gsm8k")
    nothing = make_estimates(splits=("random",), methods=METHODS[:1]).with_columns(estimate=pl.lit(np.nan))
    with pytest.raises(ParameterError, match="every one of them failed"):
        study_page(study(nothing))


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
        check_chart(study_chart(study(once), kind))


def test_what_cannot_be_drawn_says_why():
    with pytest.raises(ParameterError, match="'error', 'rank', 'coverage', 'width', 'spread', got 'bars'"):
        study_chart(RESULT, "bars")
    nothing = ESTIMATES.with_columns(estimate=float("nan"))
    with pytest.raises(ParameterError, match="every one of them failed"):
        study_chart(study(nothing), "error")
