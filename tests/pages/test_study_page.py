import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.pages.blocks import Chart
from itembank.pages.study_charts import IN_COLOUR, OTHERS, StudyNumbers
from itembank.pages.study_page import study_page
from tests.pages.reading import answers, cautions, check_charts, lead_text, of_kind
from tests.pages.test_study_charts import METHODS, make_estimates, study

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


def test_curves_are_those_of_the_summary_in_points(result, page):
    chart = next(one for one in of_kind(page, Chart) if "goes from" in one.title)
    data = pl.DataFrame({name: list(values) for name, values in chart.data[0].columns.items()})
    rows = result.summary.filter(split="random", selector="random", estimator="gp-irt").sort("budget")
    own = data.filter(split="random", method="random × gp-irt").sort("size")
    np.testing.assert_allclose(own["error"], 100.0 * rows["mae"].to_numpy())
    np.testing.assert_allclose(own["error_high"] - own["error"], 100.0 * rows["mae_se"].to_numpy())
    np.testing.assert_allclose(own["coverage"], rows["coverage"])


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
