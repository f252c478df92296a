import json

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.errors import DataError, ParameterError
from itembank.irt.parameters import ItemParameters
from itembank.responses.responses import ResponseMatrix
from itembank_studies.papers import scenario_homogeneity as kernel


def made(rng, *, n_models=150, n_items=150, alike=(0.1, 0.05), unlike=(1.0, 0.5)):
    """Two scenarios: items alike in difficulty and log discrimination, and items that differ."""
    parts = []
    theta = rng.standard_normal((n_models, 1))
    for difficulty_sd, discrimination_sd in (alike, unlike):
        slope = np.exp(discrimination_sd * rng.standard_normal(n_items))
        parts.append(expit(slope * (theta - difficulty_sd * rng.standard_normal(n_items))))
    chances = np.column_stack(parts)
    scenarios = ["alike"] * n_items + ["unlike"] * n_items
    return ResponseMatrix.create((rng.random(chances.shape) < chances).astype(float), scenarios=scenarios)


@pytest.fixture(scope="module")
def responses():
    return made(np.random.default_rng(0))


@pytest.fixture(scope="module")
def found(responses):
    return kernel.homogeneity(responses)


def test_spreads_are_those_that_items_were_made_with_items_alike_are_warned_of_and_patterns_sorted(found, responses):
    alike, unlike = found.scenarios
    assert alike.difficulty_sd < 0.3
    assert alike.discrimination_sd < 0.3
    assert unlike.difficulty_sd == pytest.approx(1.0, abs=0.25)
    for one in found.scenarios:
        assert one.difficulty_sd_lower < one.difficulty_sd < one.difficulty_sd_upper
        assert one.discrimination_sd_lower < one.discrimination_sd < one.discrimination_sd_upper
    assert unlike.discrimination_sd_lower < kernel.half_range(np.exp(0.5 * np.random.default_rng(1).normal(size=9999)))
    assert alike.warnings[0].startswith("items are alike")
    assert not unlike.warnings
    assert found.to_dict()["warned"] == ["alike"]
    pattern = found.scenarios[1].pattern
    assert pattern.shape == (150, 150)
    assert np.all(np.diff(pattern.mean(axis=1)) >= -1e-12)
    assert pattern[:, :30].mean() > pattern[:, -30:].mean() + 0.3
    np.testing.assert_allclose(pattern.mean(), responses.responses[:, 150:].mean())


def test_information_is_the_sum_over_items_and_blocks_average_what_is_known():
    parameters = ItemParameters.create(np.array([[0.5], [2.0]]), np.array([0.3, -1.0]))
    theta = np.array([-1.0, 0.4])
    p = expit(theta[:, None] * [0.5, 2.0] + [0.3, -1.0])
    expected = (np.array([0.25, 4.0]) * p * (1 - p)).sum(axis=1)
    np.testing.assert_allclose(kernel.information_of(parameters, theta, None), expected)
    counts = ItemParameters.create(parameters.loadings, parameters.intercept, family="binomial")
    weighted = (np.array([0.25, 4.0]) * p * (1 - p) * [3, 10]).sum(axis=1)
    np.testing.assert_allclose(kernel.information_of(counts, theta, np.array([3.0, 10.0])), weighted)
    values = np.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(kernel.block_means(values, 6), values)
    np.testing.assert_allclose(kernel.block_means(values, 2), [[4.0, 7.0], [16.0, 19.0]])
    values[:2, :3] = np.nan
    assert np.isnan(kernel.block_means(values, 2)[0, 0])
    values[0, 0] = 5.0
    assert kernel.block_means(values, 2)[0, 0] == 5.0


def test_reliability_is_that_of_abilities_from_so_many_items(found, responses):
    unlike = found.scenarios[1]
    ends = (unlike.lowest_ability, unlike.highest_ability)
    inside = np.interp(np.linspace(*ends, 500), unlike.grid, unlike.information) / 150
    assert unlike.reliability == pytest.approx(np.mean(50 * inside / (1 + 50 * inside)), abs=1e-3)
    enough = unlike.items_for_90 * inside
    assert np.mean(enough / (1.0 + enough)) == pytest.approx(0.9, abs=1e-3)  # by the same definition
    middle = np.interp(sum(ends) / 2, unlike.grid, unlike.information)
    assert unlike.standard_error_middle == pytest.approx(1 / np.sqrt(middle), rel=1e-2)
    larger = kernel.homogeneity(responses, budget=500).scenarios[1]
    assert larger.reliability > unlike.reliability


def test_share_ordered_is_what_a_normal_ability_gives_and_half_range_its_standard_deviation(rng):
    for reliability in (0.2, 0.8):
        # both differences above zero, of a bivariate normal: by its distribution function
        r = np.sqrt(reliability)
        both = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([0, 0])
        assert kernel.share_ordered(reliability) == pytest.approx(2 * both, abs=1e-6)
    assert kernel.share_ordered(0.8) == pytest.approx(0.852, abs=1e-3)
    values = rng.normal(scale=2.0, size=100_000)
    assert kernel.half_range(values) == pytest.approx(2.0, abs=0.02)
    values[:100] = 1e9
    assert kernel.half_range(values) == pytest.approx(2.0, abs=0.02)
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(100):
        items = rng.normal(size=80)
        value, lower, upper = kernel.spread(np.broadcast_to(items, (300, 80)), 0.9, rng)
        hits += lower <= 1.0 <= upper
        assert value == kernel.half_range(items)
    assert 80 <= hits <= 98


@pytest.mark.parametrize(
    ("difficulty", "discrimination", "n_warnings"),
    [(0.19, 0.14, 1), (0.29, 0.30, 1), (0.55, 0.61, 0), (0.2, 0.6, 0), (0.8, 0.1, 0)],
)
def test_the_papers_benchmarks_fall_on_the_right_side(difficulty, discrimination, n_warnings):
    # IRSL App. C: laws fail on BoolQ (0.19, 0.14) and HellaSwag (0.29, 0.30), and work on ARC Challenge (0.55, 0.61)
    found = kernel.warnings_of(difficulty, discrimination, mean_discrimination=1.0, reliability=0.9, budget=50)
    assert len(found) == n_warnings


def test_a_bank_gives_what_its_responses_give_and_what_cannot_be_done_is_said(responses, found):
    bank = calibrate(responses.take(items=np.arange(150, 300)), Variational(tolerance=1e-4))
    assert kernel.homogeneity(bank).rows()[0]["reliability"] == pytest.approx(found.rows()[1]["reliability"], abs=1e-12)
    rows = json.loads(json.dumps(found.rows()))
    assert [row["scenario"] for row in rows] == ["alike", "unlike"]
    assert rows[1]["warnings"] == []
    assert rows[0]["n_degenerate"] == 0
    with pytest.raises(ParameterError, match="budget must be a whole number >= 1"):
        kernel.homogeneity(responses, budget=0)
    with pytest.raises(ParameterError, match="one dimension"):
        kernel.homogeneity(responses, spec=Variational("mirt", n_dims=2))
    with pytest.warns(UserWarning, match="left out"), pytest.raises(DataError, match="tell models apart"):
        kernel.homogeneity(ResponseMatrix.create(np.ones((5, 4))))
    (text,) = kernel.warnings_of(1.0, 1.0, mean_discrimination=1.0, reliability=0.5, budget=50)
    assert "order 75 % of pairs of models correctly" in text
