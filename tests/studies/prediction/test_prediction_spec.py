import json

import pytest

from itembank.errors import ParameterError
from itembank_studies.prediction.prediction_spec import Assessor, PredictionSpec
from itembank_studies.study_specs import CalibrationChoice
from tests.studies.prediction.simulated import TWO_PL, make_spec


def test_assessors_name_themselves():
    assert Assessor("2pl").name == "2pl, random"
    assert Assessor("2pl", "adaptation", "fisher", per_cost=True).name == "2pl, adaptive fisher/cost"
    assert Assessor("ridge", name="mine").name == "mine"


def test_assessors_that_choose_alike_share_their_items():
    assert Assessor("2pl").selection_key == Assessor("ridge").selection_key
    designed = Assessor("ridge", "selection", "v-optimal", design="mirt")
    assert designed.selection_key == Assessor("mirt", "selection", "v-optimal").selection_key
    assert designed.selection_key != Assessor("2pl", "selection", "v-optimal").selection_key
    assert designed.selection_key != Assessor("mirt", "adaptation", "v-optimal").selection_key
    other = Assessor("mirt", "selection", "v-optimal", per_cost=True)
    assert designed.selection_key != other.selection_key


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (("2pl", "guessing"), "paradigm of an assessor must be one of 'prediction'"),
        (("2pl", "prediction", "fisher"), "selector of prediction must be one of 'random'"),
        (("2pl", "adaptation", "anchor-irt"), "selector of adaptation must be one of 'fisher'"),
        (("2pl", "selection", "best"), "selector of selection must be one of"),
        (("2pl", "selection", "uniform", True), "per_cost divides a criterion"),
        (("ridge", "selection", "v-optimal"), "'ridge' has none: give it a design"),
        ((3,), "predictor of an assessor must be a text, got 3"),
    ],
)
def test_impossible_assessors_are_refused(choices, message):
    with pytest.raises(ParameterError, match=message):
        Assessor(*choices)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"assessors": ()}, "at least one of assessors"),
        ({"assessors": ("2pl",)}, "assessors must be Assessor, got '2pl'"),
        ({"assessors": (Assessor("3pl"),)}, "must be one of '2pl', 'mirt', 'task-mean', .*, got '3pl'"),
        ({"assessors": (Assessor("ridge", "selection", "fisher", design="x"),)}, "design of assessor .* got 'x'"),
        ({"assessors": (Assessor("2pl"), Assessor("2pl"))}, "names of assessors must differ, got '2pl, random'"),
        ({"assessors": (Assessor("2pl", "selection", "min-cost"),), "cost": ""}, "needs the study to name a cost"),
        ({"reference": "x"}, "reference must be one of '2pl, random'"),
        ({"item_models": {"ridge": TWO_PL}}, "must have another name"),
        ({"item_models": {"2pl": CalibrationChoice("map")}}, "n_dims of an item model must be a whole number"),
        ({"n_items": (4, 1)}, "n_items must rise, got '4', '1'"),
        ({"n_items": ()}, "n_items must be a list of at least one number"),
        ({"n_items": (0, 1)}, "n_items must be a whole number >= 1, got 0"),
        ({"n_partitions": 2**32}, "n_partitions must be at most 10,000, got 4294967296"),
        ({"n_test": 0}, "n_test must be a whole number >= 1"),
        ({"n_train": 2}, "n_train must be a whole number >= 3"),
        ({"n_calibration_tasks": (2, 2)}, "n_calibration_tasks must differ"),
        ({"largest_held_out_share": 1.0}, "largest_held_out_share must be between 0 and 1"),
        ({"input_weight": -1.0}, "input_weight must be a finite number >= 0"),
        ({"task_pattern": "("}, "task_pattern must be a regular expression"),
        ({"levels": (7.0,)}, "levels must be errors between 0 and 1, got '7.0'"),
    ],
)
def test_impossible_studies_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        make_spec(**changes)


def test_the_reference_is_random_unless_named():
    adaptive = Assessor("2pl", "adaptation", "fisher")
    assert make_spec(adaptive, Assessor("mirt")).reference_name == "mirt, random"
    assert make_spec(adaptive).reference_name == "2pl, adaptive fisher"
    assert make_spec(adaptive, Assessor("mirt"), reference=adaptive.name).reference_name == adaptive.name


def test_a_study_is_json():
    spec = make_spec(Assessor("mirt", "selection", "v-optimal", per_cost=True))
    plain = json.loads(json.dumps(spec.to_dict()))
    assert plain["assessors"][0]["per_cost"]
    assert plain["item_models"]["mirt"]["n_dims"] == 2
    assert "data" not in plain
    assert set(plain) | {"data"} == set(PredictionSpec.__dataclass_fields__)
