import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank.selections import Selection
from itembank.errors import ParameterError
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
from itembank_studies.papers.dimensions import dimensionality
from itembank_studies.papers.item_predictions import CELLS, summarised
from itembank_studies.papers.scenario_homogeneity import homogeneity
from itembank_studies.papers.selection_weights import selection_weights
from itembank_studies.papers.task_overview import task_overview
from tests.bank.banks import make_bank
from tests.calibration.test_dimensions import simulated
from tests.pages.reading import check_chart, columns_of
from tests.scaling.two_scenarios import simulated as simulated_scenarios
from tests.studies.papers.test_dimensions import QUICK
from tests.studies.prediction.simulated import make_responses

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
    np.testing.assert_allclose(errors["high"] - errors["change"], dims.relative_standard_errors.ravel())
    assert list(dict.fromkeys(errors["asked"])) == ["10 items", "50 items"]
    assert errors["dims"] == [1, 2, 4, 1, 2, 4]
    assert chart.title == (
        f"{dims.n_dims_parallel} dimensions tell more than chance; held-out answers are predicted with {dims.n_dims}"
    )
    assert chart.save(tmp_path / "dimensions.png").stat().st_size > 5_000
    check_chart(chart)


def test_without_errors_there_are_two_panels(dims):
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
    chart.save(tmp_path / "f.svg")
    check_chart(chart)


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


def test_a_scenario_can_be_drawn_alone_and_must_be_there(homogeneous):
    assert "s2" in homogeneity_chart(homogeneous, scenarios=("s2",)).alternative
    with pytest.raises(ParameterError, match="got s9"):
        homogeneity_chart(homogeneous, scenarios=("s9",))


def made(scenario, *, is_graded):
    rng = np.random.default_rng(4)
    p = rng.random(600)
    y = rng.beta(20.0 * p, 20.0 * (1.0 - p)) if is_graded else (rng.random(600) < p).astype(float)
    model, item = np.repeat(np.arange(20), 30), np.tile(np.arange(30), 20)
    return scenario, pl.DataFrame(dict(zip(CELLS, (p, y, np.full(600, 0.5), model, item), strict=True)))


@pytest.fixture(scope="module")
def predictions():
    return summarised(dict(made(f"s{place}", is_graded=place > 0) for place in range(3)), "beta", "b")


def test_points_are_the_bins_and_the_background_the_responses(predictions, tmp_path):
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
    chart.save(tmp_path / "f.svg")
    check_chart(chart)


def test_the_title_has_the_range_and_the_error(predictions):
    low, *_, high = sorted(predictions.table["correlation"])
    words = item_predictions_chart(predictions).title
    assert words.startswith(f"Predicted responses correlate {low:.2f} to {high:.2f}")
    alone = item_predictions_chart(predictions, scenarios=("s1",)).title
    assert f"{100.0 * predictions.table['calibration_error'][1]:.1f} points off" in alone


def test_scenarios_must_be_there_and_have_room(predictions):
    with pytest.raises(ParameterError, match="got 's9'"):
        item_predictions_chart(predictions, scenarios=("s9",))
    with pytest.raises(ParameterError, match="at most 16"):
        item_predictions_chart(predictions, scenarios=["s0"] * 17)


def test_weights_of_items_and_of_parts(tmp_path):
    bank = make_bank()
    chosen = {method: select(bank, 9, method=method, rng=0) for method in ("random", "anchor-irt")}
    found = selection_weights(bank, chosen)
    chart = selection_weights_chart(found)
    np.testing.assert_allclose(
        columns_of(chart, "weights")["weight"], np.concatenate([found.weights[name] for name in chosen])
    )
    parts = columns_of(chart, "parts")
    finest = found.finest.sort(pl.col("selection") != "random", maintain_order=True)
    np.testing.assert_allclose(parts["weight"], finest["weight"])
    assert parts["part"][:4] == ["math, part 0", "math, part 1", "code", "law"]
    np.testing.assert_allclose(parts["in_score"][:4], [1 / 6, 1 / 6, 1 / 3, 1 / 3])
    assert chart.title.startswith("Weights make random's 9 items worth 9 of equal weight")
    chart.save(tmp_path / "f.svg")
    check_chart(chart)


def test_of_many_parts_those_are_drawn_that_differ_most():
    bank = make_bank(n_items=3 * (MOST_PARTS + 4))
    items = bank.responses.items
    several = items.with_columns(subscenario=items["item_id"])
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=several))
    chosen = Selection(("math/0", "code/1", "law/2"), ("math", "code", "law"), np.ones(3), "mine", bank.bank_id)
    chart = selection_weights_chart(selection_weights(bank, chosen))
    names = columns_of(chart, "parts")["part"]
    assert len(names) == MOST_PARTS
    assert {"math, math/0", "code, code/1", "law, law/2"} < set(names)
    assert f"The {bank.n_items - MOST_PARTS} others" in chart.note


def test_more_selections_than_colours_are_refused():
    bank = make_bank()
    one = select(bank, 9, method="random", rng=0)
    with pytest.raises(ParameterError, match="at most 7 selections, got 8"):
        selection_weights_chart(selection_weights(bank, {str(k): one for k in range(8)}))


def test_costs_and_scores_stand_side_by_side(tmp_path):
    found = task_overview(RESPONSES, by="subscenario", cost="tokens")
    chart = task_costs_chart(found)
    order = np.argsort(-found.cost)
    tasks = columns_of(chart, "tasks")
    np.testing.assert_allclose(tasks["cost"], found.cost[order])
    assert tasks["task"] == [found.tasks[task] for task in order]
    np.testing.assert_allclose(tasks["score"], found.score[order])
    assert chart.title.startswith(f"A response to {found.tasks[order[0]]} costs {found.cost_ratio:.1f} times")
    chart.save(tmp_path / "f.svg")
    check_chart(chart)


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


def test_of_many_tasks_the_ends_are_drawn_by_cost():
    many = make_responses(n_tasks=100, n_per_task=2, n_models=6)
    found = task_overview(many, by="subscenario", cost="tokens")
    assert len(columns_of(task_costs_chart(found), "tasks")["task"]) == MOST_BARS
