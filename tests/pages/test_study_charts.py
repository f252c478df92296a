"""Charts of studies, of papers' figures, and of estimates against true scores."""

import dataclasses
import itertools

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.errors import ParameterError
from itembank.pages.truth_charts import PredictionPanel, predicted_against_true_chart
from itembank.selection.select import select
from itembank_studies.charts.paper_charts import (
    MOST_BARS,
    MOST_PARTS,
    dimensionality_chart,
    homogeneity_chart,
    item_predictions_chart,
    selection_weights_chart,
    task_correlations_chart,
    task_costs_chart,
)
from itembank_studies.charts.prediction_charts import KINDS as PREDICTION_KINDS
from itembank_studies.charts.prediction_charts import prediction_chart
from itembank_studies.charts.study_charts import IN_COLOUR, KINDS, OTHERS, study_chart
from itembank_studies.engine import StudyManifest
from itembank_studies.papers.dimensions import dimensionality
from itembank_studies.papers.item_predictions import CELLS, summarised
from itembank_studies.papers.scenario_homogeneity import homogeneity
from itembank_studies.papers.selection_weights import selection_weights
from itembank_studies.papers.task_overview import task_overview
from itembank_studies.prediction.error_curves import differences, errors_by
from itembank_studies.prediction.prediction_spec import Assessor
from itembank_studies.results import StudyResult
from itembank_studies.run import run_prediction
from itembank_studies.summary import summarise
from tests.bank.banks import make_bank
from tests.calibration.test_dimensions import simulated
from tests.pages.reading import check_chart, check_charts, columns_of, holds
from tests.scaling.two_scenarios import simulated as simulated_scenarios
from tests.studies.papers.test_dimensions import QUICK
from tests.studies.prediction.simulated import make_responses, make_spec

METHODS = (("random", "weighted"), ("random", "gp-irt"), ("anchor-irt", "gp-irt"))


def make_estimates(*, splits=("k-fold", "$newest_models"), methods=METHODS, budgets=(30.0, 100.0), n_models=22):
    """Errors that shrink with the number of items."""
    rng, parts = np.random.default_rng(0), []
    for split in splits:
        for selector, estimator in methods:
            for budget, repeat in itertools.product(budgets, range(2)):
                truth = rng.random(n_models)
                estimate = truth + rng.normal(size=n_models) / (4.0 * np.sqrt(budget))
                named = {"split": split, "selector": selector, "estimator": estimator}
                sizes = {"budget": budget, "n_items": int(budget), "repeat": repeat}
                models = {"model_id": [f"m{m}" for m in range(n_models)], "truth": truth, "estimate": estimate}
                parts.append(pl.DataFrame(models | named | sizes))
    numbers = ("cost", "effective_items", "n_calibration", "seconds_calibrate", "seconds_select", "seconds_estimate")
    table = pl.concat(parts).with_columns(fold=0, draw=0, target=pl.lit("overall"))
    return table.with_columns(
        *(pl.lit(1.0).alias(name) for name in numbers), low=pl.col("estimate") - 0.05, high=pl.col("estimate") + 0.05
    )


def study(estimates, name="study", **choices):
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
    error = 100.0 * (pl.col("estimate") - pl.col("truth")).mean()
    expected = part.group_by("model_id").agg(x=pl.col("truth").mean(), y=error)
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


def test_the_page_has_the_charts_that_there_are_numbers_for_and_the_best_have_colours():
    many = tuple((f"s{k}", "weighted") for k in range(IN_COLOUR + 4))
    chart = study_chart(study(make_estimates(splits=("random",), methods=many)), "error")
    shades = set(chart.data[0].columns["shade"])
    assert len(shades) == IN_COLOUR + 1
    assert OTHERS in shades
    assert "4 others in grey" in chart.note
    name = "<script>alert(1)</script>"
    page = ib.show(study(make_estimates(splits=("random", name)), name=name))
    assert len(page.charts) == len(KINDS)
    check_charts(page, name)
    table = make_estimates(splits=("random",), methods=METHODS[:1], budgets=(30.0,), n_models=3).filter(repeat=0)
    page = ib.show(study(table.with_columns(low=pl.lit(np.nan), high=pl.lit(np.nan))))
    assert not any("Intervals" in chart.title for chart in page.charts)
    check_charts(page)
    with pytest.raises(ParameterError, match="'error', 'rank', 'coverage', 'width', 'spread', got 'bars'"):
        study_chart(RESULT, "bars")
    nothing = ESTIMATES.with_columns(estimate=float("nan"))
    with pytest.raises(ParameterError, match="every one of them failed"):
        study_chart(study(nothing), "error")


RESPONSES = make_responses()


@pytest.fixture(scope="module")
def dims():
    return dimensionality(simulated(40, 100, 2), QUICK, candidates=(1, 2, 4), n_shown=(10,))


@pytest.fixture(scope="module")
def homogeneous():
    return homogeneity(simulated_scenarios(np.random.default_rng(1), n_models=60, n_items=40, n_scenarios=3)[0])


def test_dimensions_show_shares_eigenvalues_and_errors_held_out(dims, tmp_path):
    chart = dimensionality_chart(dims)
    values, errors = (columns_of(chart, name) for name in ("eigenvalues", "dims"))
    np.testing.assert_array_equal(values["share"], dims.shares[:20])
    np.testing.assert_array_equal(values["threshold"], dims.thresholds[:20])
    np.testing.assert_array_equal(errors["change"], dims.relative_errors.ravel())
    for end, sign in (("low", -1.0), ("high", 1.0)):
        doubt = sign * dims.relative_standard_errors.ravel()
        np.testing.assert_allclose(np.subtract(errors[end], errors["change"]), doubt, atol=1e-12)
    assert list(dict.fromkeys(errors["asked"])) == ["10 items", "50 items"]
    assert errors["dims"] == [1, 2, 4, 1, 2, 4]
    assert chart.title == (
        f"{dims.n_dims_parallel} dimensions tell more than chance; held-out answers are predicted with {dims.n_dims}"
    )
    assert chart.save(tmp_path / "dimensions.png").stat().st_size > 5_000
    check_chart(chart)
    empty = np.empty((0, 0))
    bare = dataclasses.replace(dims, candidates=(), n_shown=(), n_dims=None, errors=empty, relative_errors=empty)
    assert len(dimensionality_chart(bare).spec["hconcat"]) == 2


def test_homogeneity_has_four_panels_for_each_scenario(homogeneous, tmp_path):
    chart = homogeneity_chart(homogeneous)
    assert [len(row["hconcat"]) for row in chart.spec["vconcat"]] == [4, 4, 4]
    for row, one in enumerate(sorted(homogeneous.scenarios, key=lambda each: not each.warnings)):
        np.testing.assert_allclose(columns_of(chart, f"pattern-{row}")["value"], one.pattern.ravel())
        for name, values in (("difficulty", one.difficulty), ("discrimination", one.discrimination)):
            bins = columns_of(chart, f"{name}-{row}")
            beyond = np.sum((values < bins["low"][0]) | (values > bins["high"][-1]))
            assert bins["n"].sum() + beyond == values.size
        np.testing.assert_allclose(columns_of(chart, f"information-{row}")["information"], one.information / 40)
        (middle,) = chart.spec["vconcat"][row]["hconcat"][3]["layer"][0]["data"]["values"]
        assert (middle["low"], middle["high"]) == pytest.approx((one.lowest_ability, one.highest_ability))
    n_fit = sum(not one.warnings for one in homogeneous.scenarios)
    assert chart.title.startswith(f"{n_fit} of 3 scenarios have items that differ enough")
    check_chart(chart, path=tmp_path / "f.svg")
    assert "s2" in homogeneity_chart(homogeneous, scenarios=("s2",)).alternative
    with pytest.raises(ParameterError, match="got s9"):
        homogeneity_chart(homogeneous, scenarios=("s9",))


def test_two_extreme_items_squeeze_neither_histograms_nor_colours(homogeneous):
    one = homogeneous.scenarios[0]
    pattern = 0.4 + 0.2 * one.pattern
    pattern[0, :2] = 0.0, 1.0
    difficulty = np.append(one.difficulty, [-500.0, 900.0])
    figures = {one.scenario: {**homogeneous.figures[one.scenario], "pattern": pattern, "difficulty": difficulty}}
    chart = homogeneity_chart(dataclasses.replace(homogeneous, table=homogeneous.table[:1], figures=figures))
    colours, histogram = chart.spec["vconcat"][0]["hconcat"][:2]
    low, high = colours["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert low >= 0.39
    assert high <= 0.61
    bins = columns_of(chart, "difficulty-0")
    assert bins["high"][-1] - bins["low"][0] < 50.0
    assert histogram["title"].endswith("‹ 1 › 1")


def made(scenario, *, is_graded):
    rng = np.random.default_rng(4)
    p = rng.random(600)
    y = rng.beta(20.0 * p, 20.0 * (1.0 - p)) if is_graded else (rng.random(600) < p).astype(float)
    model, item = np.repeat(np.arange(20), 30), np.tile(np.arange(30), 20)
    return scenario, pl.DataFrame(dict(zip(CELLS, (p, y, np.full(600, 0.5), model, item), strict=True)))


@pytest.fixture(scope="module")
def predictions():
    return summarised(dict(made(f"s{place}", is_graded=place > 0) for place in range(3)), "beta", "b")


def test_points_are_the_bins_and_the_title_has_range_and_error(predictions, tmp_path):
    chart = item_predictions_chart(predictions)
    data = {name: np.array(values, dtype=object) for name, values in columns_of(chart, "predictions").items()}
    for place, row in enumerate(predictions.rows()):
        own = predictions.bins.filter(scenario=row["scenario"])
        bins, cells = ((data["place"] == place) & (data["is_bin"] == number) for number in (1, 0))
        np.testing.assert_allclose(data["x"][bins].astype(float), own["predicted"])
        np.testing.assert_allclose(data["y"][bins].astype(float), own["observed"])
        assert data["n"][cells].sum() == row["n_cells"]
        assert f"r = {row['correlation']:.2f}" in data["panel"][bins][0]
    assert "Blue: how many responses lie there" in chart.note
    check_chart(chart, path=tmp_path / "f.svg")
    low, *_, high = sorted(predictions.table["correlation"])
    words = item_predictions_chart(predictions).title
    assert words.startswith(f"Predicted responses correlate {low:.2f} to {high:.2f}")
    alone = item_predictions_chart(predictions, scenarios=("s1",)).title
    assert f"{100.0 * predictions.table['calibration_error'][1]:.1f} points off" in alone
    with pytest.raises(ParameterError, match="got 's9'"):
        item_predictions_chart(predictions, scenarios=("s9",))
    with pytest.raises(ParameterError, match="at most 16"):
        item_predictions_chart(predictions, scenarios=["s0"] * 17)


def test_weights_of_items_and_of_parts_of_few_selections(tmp_path):
    bank = make_bank()
    chosen = {method: select(bank, 9, method=method, rng=0) for method in ("random", "anchor-irt")}
    found = selection_weights(bank, chosen)
    chart = selection_weights_chart(found)
    weights = np.concatenate([found.weights[name] for name in chosen])
    np.testing.assert_allclose(columns_of(chart, "weights")["weight"], weights)
    parts = columns_of(chart, "parts")
    finest = found.finest.sort(pl.col("selection") != "random", maintain_order=True)
    np.testing.assert_allclose(parts["weight"], finest["weight"])
    assert parts["part"][:4] == ["math, part 0", "math, part 1", "code", "law"]
    np.testing.assert_allclose(parts["in_score"][:4], [1 / 6, 1 / 6, 1 / 3, 1 / 3])
    assert chart.title.startswith("Weights make random's 9 items worth 9 of equal weight")
    check_chart(chart, path=tmp_path / "f.svg")
    bank = make_bank()
    one = select(bank, 9, method="random", rng=0)
    with pytest.raises(ParameterError, match="at most 7 selections, got 8"):
        selection_weights_chart(selection_weights(bank, {str(k): one for k in range(8)}))


def test_of_many_parts_those_are_drawn_that_differ_most():
    bank = make_bank(n_items=3 * (MOST_PARTS + 4))
    items = bank.responses.items
    several = items.with_columns(subscenario=items["item_id"])
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=several))
    chosen = ib.Selection(("math/0", "code/1", "law/2"), ("math", "code", "law"), np.ones(3), "mine", bank.bank_id)
    chart = selection_weights_chart(selection_weights(bank, chosen))
    names = columns_of(chart, "parts")["part"]
    assert len(names) == MOST_PARTS
    assert {"math, math/0", "code, code/1", "law, law/2"} < set(names)
    assert f"The {bank.n_items - MOST_PARTS} others" in chart.note


def test_costs_and_scores_stand_side_by_side_and_of_many_tasks_the_ends(tmp_path):
    found = task_overview(RESPONSES, by="subscenario", cost="tokens")
    chart, order = task_costs_chart(found), np.argsort(-found.cost)
    tasks = columns_of(chart, "tasks")
    np.testing.assert_allclose(tasks["cost"], found.cost[order])
    assert tasks["task"] == [found.tasks[task] for task in order]
    np.testing.assert_allclose(tasks["score"], found.score[order])
    assert chart.title.startswith(f"A response to {found.tasks[order[0]]} costs {found.cost_ratio:.1f} times")
    check_chart(chart, path=tmp_path / "f.svg")
    many = make_responses(n_tasks=100, n_per_task=2, n_models=6)
    found = task_overview(many, by="subscenario", cost="tokens")
    assert len(columns_of(task_costs_chart(found), "tasks")["task"]) == MOST_BARS


def test_correlations_stand_in_the_order_of_the_clusters_and_unknown_costs_are_refused():
    found = task_overview(RESPONSES, by="subscenario")
    chart = task_correlations_chart(found)
    cells = columns_of(chart, "tasks")
    for row, column, value in zip(cells["row_place"], cells["column_place"], cells["value"], strict=True):
        assert value == found.correlation[found.order[row], found.order[column]]
    assert len(cells["value"]) == len(found.tasks) * (len(found.tasks) - 1)
    assert "correlate above" in chart.title
    check_chart(chart)
    with pytest.raises(ParameterError, match=r"a cost must be known .* \(task_overview\(..., cost='tokens'\)\)"):
        task_costs_chart(found)


ASSESSORS = (
    Assessor("2pl"),
    Assessor("2pl", "selection", "fisher"),
    Assessor("2pl", "adaptation", "fisher"),
    Assessor("2pl", "adaptation", "fisher", per_cost=True),
    Assessor("2pl", "adaptation", "v-optimal"),
    Assessor("mirt"),
)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    spec = make_spec(*ASSESSORS, n_calibration_tasks=(1, 3))
    return run_prediction(spec, tmp_path_factory.mktemp("study") / "study", responses=make_responses())


@pytest.mark.parametrize("kind", PREDICTION_KINDS)
def test_every_kind_can_be_drawn(result, kind, tmp_path):
    chart = prediction_chart(result, kind)
    check_chart(chart)
    assert chart.save(tmp_path / "f.svg").stat().st_size > 5_000


def test_curves_of_predictions_are_those_of_the_summary(result):
    page = ib.show(result)
    assert [len(page.charts), page.kind] == [2, "Prediction study"]
    check_charts(page)
    chart = prediction_chart(result, "cost", sets=("extrapolation",), n_tasks=(3,), assessors=("2pl, fisher",))
    data = columns_of(chart)
    rows = result.curves.filter(assessor="2pl, fisher", set="extrapolation", n_calibration_tasks=3).sort("budget")
    np.testing.assert_allclose(data["cost"], rows["cost"])
    np.testing.assert_allclose(data["error"], 100.0 * rows["mae"].to_numpy())
    assert set(data["panel"]) == {"3 tasks asked: tasks that were not asked"}


def test_assessors_are_drawn_task_by_task_or_by_their_abilities(result):
    chart = prediction_chart(result, "tasks", budget=4)
    data = columns_of(chart)
    pair = ("2pl, adaptive fisher", "2pl, adaptive v-optimal")
    table = errors_by(result.predictions, "task", pair, n_tasks=3, which="extrapolation", budget=4).reverse()
    assert list(data["name"]) == table["name"].to_list()
    for name in ("difference", "first", "second"):
        np.testing.assert_allclose(data[name], 100.0 * table[name].to_numpy())
    n_better = (table["difference"] > 0.0).sum()
    assert chart.title.startswith(f"2pl, adaptive v-optimal errs less on {n_better} of {table.height} tasks")
    chart = prediction_chart(result, "dims", sets=("extrapolation",), n_tasks=(3,))
    data = columns_of(chart)
    errors = result.curves.filter(set="extrapolation", n_calibration_tasks=3).sort("budget")
    one, two = (errors.filter(assessor=name)["mae"].to_numpy() for name in ("2pl, random", "mirt, random"))
    assert list(data["n_dims"]) == [1, 2] * 3
    np.testing.assert_array_equal(data["percent"][::2], 0.0)
    np.testing.assert_allclose(data["percent"][1::2], 100.0 * (two / one - 1.0), rtol=1e-6)
    ratios = differences(result.errors, "2pl, random").filter(assessor="mirt, random", set="extrapolation")
    doubt = 100.0 * np.kron(ratios.filter(n_calibration_tasks=3).sort("budget")["ratio_se"], [0.0, 1.0])
    for end, sign in (("low", -1.0), ("high", 1.0)):
        np.testing.assert_allclose(data[end], data["percent"] + sign * doubt)
    assert "abilit" in chart.title
    with pytest.raises(ParameterError, match="item models of one, and of other numbers of abilities"):
        prediction_chart(result, "dims", assessors=("2pl, random", "2pl, fisher"))


@pytest.mark.parametrize(
    ("kind", "choices", "message"),
    [
        ("error", {}, "kind of a figure must be one of"),
        ("items", {"assessors": ("x",)}, "assessors must be among"),
        ("items", {"sets": ("x",)}, "sets must be among"),
        ("items", {"n_tasks": (2,)}, "n_tasks must be among '1', '3', got '2'"),
        ("tasks", {"budget": 5}, "budget must be among"),
        ("tasks", {"assessors": ("2pl, random",)}, "two assessors are compared, got 1"),
    ],
)
def test_what_the_study_does_not_have_is_refused(result, kind, choices, message):
    with pytest.raises(ParameterError, match=message):
        prediction_chart(result, kind, **choices)


def test_a_study_that_adapts_one_way_needs_names(tmp_path):
    spec = make_spec(Assessor("2pl"), Assessor("task-mean"), cost="", n_partitions=2)
    result = run_prediction(spec, tmp_path / "study", responses=make_responses())
    with pytest.raises(ParameterError, match="Name two assessors"):
        prediction_chart(result, "tasks")
    with pytest.raises(ParameterError, match=r"abilities, each its own, got 'task-mean, random \(0\)', '2pl, random"):
        prediction_chart(result, "dims", assessors=("2pl, random", "task-mean, random"))
    with pytest.raises(ParameterError, match="names no cost"):
        prediction_chart(result, "cost")


@pytest.fixture
def panel(rng):
    true = rng.uniform(0.3, 0.9, 12)
    estimate = true + rng.normal(0.0, 0.05, 12)
    return PredictionPanel("gp-IRT", true, estimate, estimate - 0.04, estimate + 0.06)


def domain_of(chart):
    return chart.spec["spec"]["layer"][1]["encoding"]["y"]["scale"]["domain"]


def test_points_and_intervals_stand_where_the_numbers_are(panel, tmp_path):
    chart = predicted_against_true_chart([panel])
    data = columns_of(chart)
    for name in ("true", "estimate", "low", "high"):
        np.testing.assert_array_equal(data[name], getattr(panel, name))
    low, high = domain_of(chart)
    assert low < panel.low.min()
    assert high > panel.high.max()
    assert "Bars: 95 % intervals." in chart.note
    assert chart.save(tmp_path / "figure.png").stat().st_size > 5_000
    check_chart(chart)


def test_wide_unknown_and_odd_intervals_are_drawn(panel, tmp_path):
    high = panel.high.copy()
    high[3] = 9.0
    chart = predicted_against_true_chart([PredictionPanel("wide", panel.true, panel.estimate, panel.low, high)])
    assert domain_of(chart)[1] < 1.5
    assert chart.spec["spec"]["layer"][1]["mark"]["clip"]
    flagged = np.arange(12) == 5
    drawn = PredictionPanel("one", panel.true, panel.estimate, panel.low, panel.high, flagged)
    chart = predicted_against_true_chart([drawn])
    np.testing.assert_array_equal(columns_of(chart)["is_flagged"], flagged)
    assert "Hollow: answered unlike past models." in chart.note
    nothing = np.full(12, np.nan)
    chart = predicted_against_true_chart([PredictionPanel("plain", panel.true, panel.estimate, nothing, nothing)])
    assert "intervals" not in chart.note
    assert chart.save(tmp_path / "figure.svg").is_file()


def test_titles_state_the_errors_and_axes_the_score(panel, tmp_path):
    error = 100.0 * np.abs(panel.estimate - panel.true).mean()
    alone = predicted_against_true_chart([panel])
    assert alone.title == f"Estimates are off by {error:.1f} points on average"
    assert set(columns_of(alone)["panel"]) == {"gp-IRT"}
    worse = PredictionPanel("mean", panel.true, panel.true + 0.2, panel.low, panel.high)
    both = predicted_against_true_chart([worse, panel])
    assert both.title.endswith(f"off by {error:.1f} points on average (gp-IRT), 20.0 points at worst (mean)")
    assert columns_of(both)["panel"][0] == "mean: off by 20.0 points"
    assert predicted_against_true_chart([panel], title="Mine").title == "Mine"
    picture = predicted_against_true_chart([panel], target="$math").save(tmp_path / "f.svg").read_text(encoding="utf-8")
    holds(picture, "True $math score", "Estimated $math score")
    with pytest.raises(ParameterError, match="at least one"):
        predicted_against_true_chart([])
