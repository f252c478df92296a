import json

import pytest

from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import GPIRT
from itembank.estimation.estimator_specs import METHODS as ESTIMATIONS
from itembank.selection.selector_specs import METHODS, AnchorIRT, Random
from itembank_studies.split_specs import ByGroup, KFold, NamedGroup, RandomShare, TrainingShare
from itembank_studies.study_specs import (
    CalibrationChoice,
    CostBudget,
    DataSpec,
    MethodChoice,
    StudySpec,
    resolve_choice,
)
from tests.studies.simulated import make_spec


def choice(thing, table=METHODS):
    return MethodChoice.of(thing, table, purpose="selector")


def test_a_method_can_be_told_in_four_ways_and_is_labelled_by_its_name():
    wanted = AnchorIRT(n_restarts=10)
    for thing in ({"method": "anchor-irt", "n_restarts": 10}, wanted, MethodChoice("anchor-irt", {"n_restarts": 10})):
        assert resolve_choice(choice(thing), METHODS) == wanted
        assert choice(thing).label == "anchor-irt (n_restarts=10)"
    assert resolve_choice(choice("random"), METHODS) == Random()
    named = choice({"method": "gp-irt", "name": "measured", "anchor_variance_factor": "estimated"}, ESTIMATIONS)
    assert named.label == "measured"
    assert resolve_choice(named, ESTIMATIONS) == GPIRT(anchor_variance_factor="estimated")


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("anchr", "'random', 'stratified', 'anchor-correctness', 'anchor-irt'.*got 'anchr'"),
        ({"method": "anchor-irt", "restarts": 3}, "'n_restarts', 'standardise', 'allow_degenerate'.*'restarts'"),
        ({"method": "anchor-irt", "n_restarts": 0}, "n_restarts must be a whole number >= 1, got 0"),
        ({"method": "anchor-irt", "n_restarts": "many"}, "anchor-irt"),
        ({"n_restarts": 3}, "must have a text 'method'"),
        (3, "selector must be a short name"),
    ],
)
def test_what_is_no_choice_says_what_is(thing, message):
    with pytest.raises(ParameterError, match=message):
        resolve_choice(choice(thing), METHODS)


def test_all_selectors_go_with_all_estimators_and_plain_values_make_a_study():
    def pairs(spec):
        return [(one.label, other.label) for one in spec.selectors for other in spec.estimators_of(one.label)]

    product = [("random", "weighted"), ("random", "gp-irt"), ("anchor-irt", "weighted"), ("anchor-irt", "gp-irt")]
    assert pairs(make_spec()) == product
    assert pairs(make_spec(pairs=[["anchor-irt", "gp-irt"]])) == [("anchor-irt", "gp-irt")]
    spec = StudySpec("mine", splits=[KFold()], selectors=["random"], estimators=["mean"], n_items=[30])
    assert (spec.budgets, spec.cost_unit, spec.splits) == ((30.0,), "", (KFold(),))


def test_what_numbers_depend_on_is_in_the_json_without_paths_of_the_machine(tmp_path):
    spec = make_spec(data=DataSpec(responses=("${HERE}/r.csv",), folder=tmp_path), budget=None)
    text = json.dumps(spec.to_dict())
    assert "${HERE}/r.csv" in text
    assert str(tmp_path) not in text
    assert spec == make_spec(data=DataSpec(responses=("${HERE}/r.csv",)))
    for changes in (
        {"seed": 4},
        {"level": 0.9},
        {"interval": "model-based"},
        {"repeats": 3},
        {"n_draws": 2},
        {"splits": (RandomShare(0.3),)},
        {"calibration": CalibrationChoice(n_dims=1, options={"max_iterations": 7})},
        {"selectors": ("random", {"method": "anchor-irt", "n_restarts": 2, "name": "anchor-irt"})},
        {"n_items": (), "budget": CostBudget("output_tokens", (10.0,))},
    ):
        assert make_spec(**changes).to_dict() != make_spec().to_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selectors": ("rndom",)}, "selection method must be one of 'drawn'.*'rndom'"),
        ({"estimators": ("gpirt",)}, "estimation method must be one of 'mean'.*'gpirt'"),
        ({"selectors": ()}, "at least one of selectors"),
        ({"selectors": "random"}, "selectors must be a list, got 'random'"),
        ({"selectors": ("random", "random")}, "names of selectors must differ.*'random'"),
        ({"splits": ()}, "at least one of splits"),
        ({"splits": ("k-fold",)}, "a split must be one of 'KFold'"),
        ({"splits": (KFold(3), KFold(4))}, "names of splits must differ"),
        ({"pairs": [["random", "gp"]]}, "take their estimators from 'weighted', 'gp-irt', got 'gp'"),
        ({"pairs": [["random"]]}, "a pair must be"),
        ({"n_items": ()}, "either n_items.*or a budget"),
        ({"n_items": (0,)}, "n_items must be a whole number >= 1, got 0"),
        ({"n_items": (10, 10)}, "more than once"),
        ({"budget": CostBudget("cost_usd", (1.0,))}, "give one"),
        ({"level": 0.0}, "level must be between 0 and 1, got 0.0"),
        ({"interval": "narrow"}, "interval of a study must be one of 'auto', 'calibrated', 'model-based', 'design'"),
        ({"interval": "design"}, "goes with the estimator 'auto' alone, got 'weighted', 'gp-irt'"),
        ({"interval": "design", "estimators": ("auto",)}, "needs items drawn by chance.* selectors 'anchor-irt'"),
        ({"repeats": 0}, "repeats must be a whole number >= 1"),
        ({"repeats": 2**63}, "repeats must be at most 100,000, got 9223372036854775808"),
        ({"n_draws": -1}, "n_draws"),
        ({"seed": -1}, "seed must be a whole number >= 0"),
    ],
)
def test_a_study_that_cannot_be_says_why(changes, message):
    with pytest.raises(ParameterError, match=message):
        make_spec(**changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KFold(1), "k of a split must be a whole number >= 2, got 1"),
        (lambda: RandomShare(1.0), "test_share must be between 0 and 1, got 1.0"),
        (lambda: ByGroup("org", k=1), "k of a split"),
        (lambda: NamedGroup("org", ()), "at least one group"),
        (lambda: NamedGroup("org", "mine"), "at least one group to test, got 'mine'"),
        (TrainingShare, "either n_models or shares"),
        (lambda: TrainingShare((9,)), "whole numbers from 10, got .9."),
        (lambda: TrainingShare(shares=(1.5,)), "above 0 and at most 1, got 1.5"),
        (DataSpec, "either builtin"),
        (lambda: DataSpec(builtin="classifiers", responses=("r.csv",)), "give one"),
        (lambda: DataSpec(builtin="classifiers", keep_items={"column": "x"}), "keep_items must be"),
        (lambda: CalibrationChoice(method="bayes"), "'variational', 'map', 'mml', got 'bayes'"),
        (lambda: CalibrationChoice(n_dims="many"), "n_dims must be a whole number or 'auto'"),
        (lambda: CalibrationChoice(n_dims=0), "n_dims must be a whole number >= 1"),
        (lambda: CalibrationChoice(item_model="2pl"), "chooses among several abilities"),
        (lambda: CalibrationChoice(within="mean"), "within must be one of 'micro', 'macro', 'custom'"),
        (lambda: CalibrationChoice(options={"iterations": 3}), "'max_iterations'.*got 'iterations'"),
        (lambda: CostBudget("cost_usd", ()), "must be a list of numbers > 0"),
        (lambda: CostBudget("cost_usd", (1.0, 0.0)), "> 0"),
    ],
)
def test_parts_check_themselves(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
