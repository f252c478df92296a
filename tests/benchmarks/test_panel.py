from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import itembank as ib
from benchmarks.panel import bands, goals
from benchmarks.panel.figure import NORMAL_95, running_percentile, wilson_interval
from benchmarks.panel.floor import sampling_errors, times_tested
from benchmarks.panel.table import IRT, PUBLISHED, cells
from benchmarks.panel.work import DEFAULT, STAGES, of_method, parts
from benchmarks.resampling import DRAWS, IntervalQuality, Resampled
from itembank_studies.comparison_study import prepare_fold
from itembank_studies.split_specs import LeaveOneOut, NamedGroup, RandomShare
from itembank_studies.splits import make_folds
from itembank_studies.study_specs import CalibrationChoice, StudySpec
from tests.studies.simulated import make_responses

pytestmark = pytest.mark.usefixtures("few_folds", "rival_methods")

RESPONSES = make_responses(n_scenarios=1)
PAIRS = (DEFAULT, IRT, ("stratified", "aipw"), ("bayesian-quadrature", "bayesian-quadrature"))


@pytest.fixture(scope="module")
def spec(rival_methods):
    selectors, estimators = (tuple(dict.fromkeys(names)) for names in zip(*PAIRS, strict=True))
    methods = {"selectors": selectors, "estimators": estimators, "pairs": PAIRS}
    choices = {"calibration": CalibrationChoice("map", n_dims=1), "n_items": (12,), "repeats": 2}
    return StudySpec("bfcl_v1", splits=(NamedGroup("is_odd", (True,), name="native"),), **methods, **choices)


@pytest.fixture(scope="module")
def estimates(spec, few_folds):
    ((name, make),) = parts("bfcl_v1", spec, RESPONSES).items()
    assert name == "native-0to1-0"  # after its split, repeats and fold
    return make()


def test_two_stages_are_those_of_the_verbs(spec, estimates):
    (fold,) = make_folds(spec.splits[0], RESPONSES.models, spec.repeats, spec.seed)
    prepared = prepare_fold(spec, RESPONSES, fold)
    model = prepared.new.take(models=np.array([4]))
    routing = ib.select(prepared.bank, 12, stages=2, rng=0)
    module = ib.selectors.next_stage(prepared.bank, routing, model)
    expected = ib.estimate(prepared.bank, model, selection=module)
    found = of_method(estimates, STAGES).filter(model_id=model.model_ids[0])
    assert found["repeat"].to_list() == [0, 1]
    assert found["estimate"].to_list() == pytest.approx([expected.value[0, -1]] * 2)
    assert found["n_used"].to_list() == [12, 12]


def test_a_cell_compares_the_default_with_every_method_and_goals_name_those_that_miss_them(estimates):
    (record,) = cells(estimates)
    default, irt = (of_method(estimates, method) for method in (DEFAULT, IRT))
    error = [100.0 * (one["estimate"] - one["truth"]).abs().mean() for one in (default, irt)]
    assert record["errors"][DEFAULT].value == pytest.approx(error[0])
    assert record["ratio"].value == pytest.approx(error[0] / error[1])
    assert record["best"] in set(PAIRS) & set(PUBLISHED)
    assert record["n_models"] == 20
    assert record["coverage"] == pytest.approx(IntervalQuality.of(default).coverage)
    (record,) = cells(estimates)
    draws = 1.2 + 0.1 * (-1.0) ** np.arange(DRAWS)
    lost = {**record, "ratio": Resampled(1.2, draws), "coverage": 0.9}
    text = goals.markdown([lost, {**record, "coverage": 0.95, "study": "swebench_verified"}])
    assert "one batch (goal: none): BFCL native 12: 1.20 ± 0.10" in text
    assert "BFCL native 12: 0.900" in text
    assert "SWE-bench Verified native 12:" in text.splitlines()[2]


def of_chance(estimates):
    """Estimates that differ between repeats, whatever method the default chose for so few models."""
    return estimates.with_columns(estimate=pl.col("estimate") + 1e-6 * pl.col("repeat"))


def test_every_estimate_is_in_one_band(estimates):
    estimates = of_chance(estimates)
    again = estimates.with_columns(repeat=pl.col("repeat") + 2)  # what a method without chance finds in other repeats
    default = bands.default_estimates(pl.concat([estimates, again]))
    assert default.height == 40
    families = {"bfcl_v1": {model: f"org-{number % 3}" for number, model in enumerate(RESPONSES.model_ids)}}
    by_one = [of(default) for of in (bands.by_misfit, bands.by_flag, bands.by_decile)]
    for groups in (*by_one, bands.by_family(default, families)):
        assert sorted(model for rows in groups.values() for model in rows["model_id"]) == sorted(default["model_id"])
    assert bands.by_misfit(default)["0.7 to 1.3"]["misfit"].is_between(0.7, 1.3).all()
    ranked = list(bands.by_decile(default).values())
    assert [rows.height for rows in ranked] == [4] * 10
    assert all(one["estimate"].max() <= two["estimate"].min() for one, two in pairwise(ranked))
    default = bands.default_estimates(of_chance(estimates))
    models = default["model_id"].unique().sort()
    kind = {model: "large" if number < 8 else f"small-{number}" for number, model in enumerate(models)}
    found = bands.by_family(default, {"bfcl_v1": kind})
    assert {name: rows.height for name, rows in found.items()} == {"BFCL: large": 16, "BFCL: others": 24}


def test_running_percentiles_of_right_intervals_are_their_half_width_and_wilsons_are_the_textbooks():
    rng = np.random.default_rng(0)
    width = rng.uniform(1.0, 5.0, 20_000)
    middle, percentile = running_percentile(width, np.abs(rng.normal(size=width.size)) * width / 1.96)
    assert middle.size > 10
    np.testing.assert_allclose(percentile, middle, rtol=0.12)
    assert running_percentile(width[:30], width[:30])[0].size == 0  # too few to tell
    # eight of ten, and ten of ten, whose lower end is n / (n + z^2)
    low, high = wilson_interval(np.array([0.8, 1.0]), np.array([10, 10]))
    np.testing.assert_allclose(low, [0.49016, 10.0 / (10.0 + NORMAL_95**2)], atol=1e-5)
    np.testing.assert_allclose(high, [0.94332, 1.0], atol=1e-5)


def test_random_sampling_errs_as_the_formula_says_and_models_count_as_often_as_they_are_tested():
    bank, n_items, answers = ib.calibrate(RESPONSES, "map"), 20, RESPONSES.responses
    variance = answers.var(axis=1, ddof=1) / n_items * (1.0 - n_items / RESPONSES.n_items)  # Cochran 1977, eq. 2.8
    found = sampling_errors(bank, n_items, 400)
    assert found.mean() == pytest.approx(np.sqrt(2.0 * variance / np.pi).mean(), rel=0.1)
    np.testing.assert_allclose(sampling_errors(bank, bank.n_items, 2), 0.0, atol=1e-12)
    models = RESPONSES.models
    assert times_tested(make_folds(LeaveOneOut(), models, 3, 0), models.height).tolist() == [3] * models.height
    drawn = times_tested(make_folds(RandomShare(), models, 3, 0), models.height)
    assert drawn.sum() == 3 * round(RandomShare().test_share * models.height)
    assert drawn.max() <= 3
