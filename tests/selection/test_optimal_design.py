import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank.selections import Selection
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP
from itembank.errors import DataError, ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.estimator_specs import PIRT
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import try_methods
from itembank.irt.parameters import AbilityPrior
from itembank.selection.criteria import CRITERIA, criterion_of
from itembank.selection.greedy import Bounds, askable_items, next_items
from itembank.selection.item_worth import DesignItems
from itembank.selection.recipes import read_recipe
from itembank.selection.select import select, select_by_recipe
from itembank.selection.selector_specs import OptimalDesign
from itembank_studies.run import run_study
from tests.bank.banks import make_bank
from tests.studies.simulated import make_responses, make_spec


@pytest.fixture(scope="module")
def bank():
    """Sixty items in two dimensions, with tokens of unequal expectation; new models are not average on both."""
    bank = make_bank(n_models=20, n_items=60, with_extras=True)
    rng = np.random.default_rng(2)
    tokens = rng.lognormal(4.0, 1.5, 60) * rng.lognormal(0.0, 0.2, (20, 60))
    responses = dataclasses.replace(
        bank.responses, costs={"output_tokens": tokens, "cost_usd": 0.001 * tokens[:, ::-1]}
    )
    prior = AbilityPrior(np.array([0.8, -0.4]), np.array([[1.2, 0.3], [0.3, 0.5]]))
    return dataclasses.replace(
        bank, responses=responses, calibration=dataclasses.replace(bank.calibration, prior=prior)
    )


def positions(bank, selection):
    return sorted(bank.responses.item_indices(selection.item_ids).tolist())


@pytest.mark.parametrize("name", [name for name in CRITERIA.kinds if name != "drawn"])
def test_items_are_those_of_the_kernel_at_the_prior(bank, name):
    prior = bank.calibration.prior
    expected = next_items(
        DesignItems.of_bank(bank, askable_items(bank, ()), cost="tokens"),
        criterion_of(name),
        prior.mean,
        prior.covariance,
        14,
        target_weights=bank.targets.overall_weights,
        is_open=np.ones(60, dtype=bool),
        counts=np.zeros(3, dtype=np.int64),
        bounds=Bounds(np.ones(3, dtype=np.int64), np.full(3, 20)),
        n_left=14,
        rng=np.random.default_rng(8),
    )
    selection = select(bank, 14, method=OptimalDesign(name), rng=8)
    assert positions(bank, selection) == sorted(expected.tolist())
    assert selection.method == "optimal-design"
    assert selection.inclusion_probabilities is None


def test_dividing_by_cost_saves(bank):
    tokens = bank.responses.costs["output_tokens"].mean(axis=0)

    def spent(**choices):
        return tokens[positions(bank, select(bank, 12, method=OptimalDesign(**choices)))].sum()

    assert spent(criterion="min-cost") <= spent(per_cost=True) < 0.6 * spent()
    # another unit, in which other items are dear
    dollars = select(bank, 12, method=OptimalDesign(per_cost=True, cost="cost_usd"))
    assert positions(bank, dollars) != positions(bank, select(bank, 12, method=OptimalDesign(per_cost=True)))


def test_the_target_steers_the_choice(bank):
    loadings = np.zeros((60, 3))
    loadings[np.arange(60), bank.targets.scenario_index] = 1.0
    parameters = dataclasses.replace(bank.parameters, loadings=loadings)
    calibration = dataclasses.replace(bank.calibration, parameters=parameters, prior=AbilityPrior.standard(3))
    apart = dataclasses.replace(bank, calibration=calibration)
    for scenario in bank.targets.scenarios:
        chosen = select(apart, 9, method=OptimalDesign(target=scenario, at_least=0))
        assert set(chosen.scenarios) == {scenario}
        chosen = select(apart, 9, method=OptimalDesign(target=scenario))
        assert sorted(chosen.scenarios.count(name) for name in bank.targets.scenarios) == [1, 1, 7]


def test_content_constraints_are_kept_and_per_scenario_is_the_number_for_each(bank):
    spec = OptimalDesign("d-optimal", at_least={"law": 5}, at_most={"math": 1, "code": 4})
    chosen = select(bank, 9, method=spec)
    counts = {name: chosen.scenarios.count(name) for name in bank.targets.scenarios}
    assert counts["law"] >= 5
    assert counts["math"] <= 1
    assert counts["code"] <= 4
    chosen = select(bank, 4, method="optimal-design", per_scenario=True)
    assert [chosen.scenarios.count(name) for name in bank.targets.scenarios] == [4, 4, 4]


def test_the_recipe_of_a_selection_by_scenario_can_be_taken_up_for_fewer_items(bank):
    chosen = select(bank, 4, method="optimal-design", per_scenario=True)
    content = chosen.to_dict()
    content["items"] = [row for row in content["items"] if row["scenario"] != "law"][:6]
    recipe = read_recipe(Selection.from_dict(content))
    assert select(bank, recipe.n_items, method=recipe.spec, per_scenario=recipe.per_scenario).n_items == 6
    assert read_recipe(chosen).per_scenario
    assert select(bank, 4, method=read_recipe(chosen).spec, per_scenario=True).item_ids == chosen.item_ids


def test_fewer_items_than_scenarios_may_be_chosen_where_scenarios_may_go_without(bank):
    without = select(bank, 2, method=OptimalDesign(at_least=0))
    assert without.n_items == 2
    assert select(bank, 2, method=OptimalDesign()).item_ids == without.item_ids


def test_exposure_is_spread_by_drawing_among_the_best(bank):
    for randomesque, n_selections in ((1, 1), (5, 5)):
        spec = OptimalDesign(randomesque=randomesque)
        drawn = {tuple(positions(bank, select(bank, 9, method=spec, rng=seed))) for seed in range(5)}
        assert len(drawn) == n_selections


@pytest.mark.parametrize(
    ("choices", "n_items", "message"),
    [
        ({"target": "maths"}, 9, "target must be one of .*, got 'maths'"),
        ({"at_least": {"maths": 1}}, 9, "at_least must name scenarios of the bank"),
        ({"at_least": 4}, 9, "at_least asks for 12 items in all, and 9 are to be chosen"),
        ({"at_most": 2}, 9, "n_items must be at most 6, what at_most leaves of 60"),
        ({}, 61, "n_items must be from 1 to 60"),
        ({"at_least": 0}, 0, "n_items must be from 1 to 60"),
        ({"at_least": 2}, 2, "at_least asks for 6 items in all, and 2 are to be chosen"),
        *(
            (bounds, 4, "every scenario gets n_items = 4")
            for bounds in ({"at_most": {"law": 2}}, {"at_least": {"law": 5}}, {"at_least": 2})
        ),
    ],
)
def test_what_cannot_be_chosen_is_said(bank, choices, n_items, message):
    with pytest.raises(ParameterError, match=message):
        select(bank, n_items, method=OptimalDesign(**choices), per_scenario=message.startswith("every scenario"))


def test_what_cannot_be_learnt_excluded_or_priced_is_refused(bank):
    is_law = bank.targets.scenario_index == bank.targets.scenarios.index("law")
    changed = dataclasses.replace(bank, calibration=dataclasses.replace(bank.calibration, is_degenerate=is_law))
    with pytest.raises(ParameterError, match="all 20 of this one were answered alike"):
        select(changed, 9, method=OptimalDesign(target="law", at_least=0))
    assert select(changed, 9, method=OptimalDesign("d-optimal", target="law", at_least=0)).n_items == 9
    with pytest.raises(ParameterError, match="candidate set must not be empty"):
        select(bank, 9, method=OptimalDesign(), excluded=bank.item_ids)
    tokens = bank.responses.costs["output_tokens"].copy()
    tokens[:, [7, 9]] = np.nan
    changed = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, costs={"output_tokens": tokens}))
    with pytest.raises(DataError, match="unknown for every model for 2 of 60: 'code/7', 'math/9'"):
        select(changed, 9, method=OptimalDesign(per_cost=True))
    assert select(changed, 9, method=OptimalDesign(per_cost=True), excluded=["code/7", "math/9"]).n_items == 9
    assert select(changed, 9, method=OptimalDesign()).n_items == 9
    with pytest.raises(DataError, match="must be recorded, and no cost is, got 'tokens'"):
        select(make_bank(), 9, method=OptimalDesign("min-cost"))


@pytest.fixture(scope="module")
def calibrated():
    """A bank of calibrated models, with costs that rise with the item's number."""
    return calibrate(make_responses(), JointMAP(n_dims=1))


def test_folds_choose_their_own_items_by_the_recipe(calibrated, monkeypatch):
    spec = OptimalDesign(per_cost=True, at_least=0)
    selection = select(calibrated, 6, method=spec, rng=0)
    asked = []

    def seen(bank, recipe, rng):
        asked.append((recipe.n_items, recipe.spec))
        return select_by_recipe(bank, recipe, rng)

    monkeypatch.setattr("itembank.estimation.method_trials.select_by_recipe", seen)
    found = try_methods(Asked.of_past(calibrated, selection), [PIRT()])
    assert asked == [(6, spec)] * len(folds(calibrated))
    assert len(asked) > 1
    assert np.isfinite(found.single(0).error).all()


def test_a_study_can_choose_by_it(tmp_path):
    cheap = {"method": "optimal-design", "name": "cheap", "criterion": "fisher", "per_cost": True, "at_least": 0}
    selectors = ("optimal-design", cheap)
    spec = make_spec(selectors=selectors, estimators=("p-irt",), repeats=1, cost="output_tokens")
    result = run_study(spec, tmp_path / "study", responses=make_responses())
    spent = dict(result.estimates.group_by("selector").agg(pl.col("cost").mean()).iter_rows())
    assert spent["cheap"] < 0.7 * spent["optimal-design"]
