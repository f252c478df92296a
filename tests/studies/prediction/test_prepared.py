import json

import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank_studies.prediction.prediction_spec import Assessor, PredictionSpec
from itembank_studies.prediction.prepared import budgets_of, calibration_task_counts, find_tasks, make_partition
from itembank_studies.split_specs import Beyond
from itembank_studies.splits import folds_of
from itembank_studies.study_specs import CalibrationChoice
from tests.studies.prediction.simulated import TWO_PL, make_responses, make_spec

RESPONSES = make_responses()


def test_tasks_are_those_that_are_large_enough_or_match_or_too_few():
    responses = RESPONSES.take(items=np.arange(24 * 3 + 10))  # the fourth has ten items
    tasks = find_tasks(make_spec(n_held_out=9), responses)
    assert tasks.names == ("task-0", "task-1", "task-2")
    assert tasks.n_items.tolist() == [24, 24, 24]
    assert tasks.n_held_out.tolist() == [9, 9, 9]
    assert (tasks.index == np.concatenate([np.repeat([0, 1, 2], 24), np.full(10, -1)])).all()
    assert find_tasks(make_spec(), responses).n_held_out.tolist() == [12, 12, 12]  # at most half
    tasks = find_tasks(make_spec(task_pattern="^task-[0-3]"), RESPONSES)
    assert tasks.names == ("(none)", "task-0", "task-1", "task-2", "task-3")
    assert tasks.n_items.tolist() == [48, 24, 24, 24, 24]
    with pytest.raises(DataError, match=r"at least two tasks of 16 items or more are needed, got 1 of 1 .* 'all'"):
        find_tasks(make_spec(task="scenario"), RESPONSES)
    with pytest.raises(DataError, match="needs the column 'x'"):
        find_tasks(make_spec(task="x"), RESPONSES)


def test_at_most_half_of_the_tasks_and_what_the_largest_hold_can_be_asked():
    assert calibration_task_counts(make_spec(n_calibration_tasks=(1, 2, 4, 16)), 6) == (1, 2, 3)
    tasks = find_tasks(make_spec(), RESPONSES)
    spec = make_spec(n_items=(1, 8, 12, 16, 64))
    assert budgets_of(spec, tasks, 1) == (1, 8, 12)
    assert budgets_of(spec, tasks, 3) == (1, 8, 12, 16)
    assert budgets_of(make_spec(n_items=(50, 60)), tasks, 1) == (50,)


def test_a_partition_divides_models_and_items():
    spec = make_spec(n_held_out=7)
    tasks = find_tasks(spec, RESPONSES)
    one = make_partition(spec, RESPONSES, tasks, 0)
    assert one.test.size == 6
    assert sorted([*one.train, *one.test]) == list(range(24))
    assert np.bincount(tasks.index[one.is_held_out]).tolist() == [7] * 6
    assert sorted(one.task_order) == list(range(6))
    again, other = make_partition(spec, RESPONSES, tasks, 0), make_partition(spec, RESPONSES, tasks, 1)
    for name in ("train", "test", "is_held_out", "task_order"):
        assert (getattr(one, name) == getattr(again, name)).all()
        assert not np.array_equal(getattr(one, name), getattr(other, name))


def test_every_item_is_held_out_as_often_as_another():
    spec = make_spec(n_held_out=6)
    tasks = find_tasks(spec, RESPONSES)
    times = sum(make_partition(spec, RESPONSES, tasks, k).is_held_out.astype(int) for k in range(400))
    # binomial with p = 1/4: mean 100, standard deviation 8.7; over 144 items none beyond 5 of them
    assert abs(times.mean() - 100.0) < 1e-9
    assert np.abs(times - 100.0).max() < 45.0


def test_a_number_of_training_models_can_be_asked_for():
    tasks = find_tasks(make_spec(), RESPONSES)
    assert make_partition(make_spec(n_train=8), RESPONSES, tasks, 0).train.size == 8
    with pytest.raises(DataError, match="of 6 test models must leave at least 19 to train on, got 24"):
        make_partition(make_spec(n_train=19), RESPONSES, tasks, 0)
    with pytest.raises(DataError, match="must leave at least 3"):
        make_partition(make_spec(n_test=22), RESPONSES, tasks, 0)


def test_test_models_may_be_drawn_from_the_best_ones():
    tasks = find_tasks(make_spec(), RESPONSES)
    (best,) = folds_of([Beyond(0.5)], RESPONSES)
    one, other = (make_partition(make_spec(split=Beyond(0.5)), RESPONSES, tasks, number, best) for number in range(2))
    assert set(one.test) < set(best.test)
    assert set(one.train) == set(best.train)
    assert set(one.test) != set(other.test)
    with pytest.raises(DataError, match="of 13 test models"):
        make_partition(make_spec(n_test=13), RESPONSES, tasks, 0, best)


def test_a_study_is_json_and_says_which_models_it_tests():
    spec = make_spec(Assessor("mirt", "selection", "v-optimal", per_cost=True))
    plain = json.loads(json.dumps(spec.to_dict()))
    assert plain["assessors"][0]["per_cost"]
    assert plain["item_models"]["mirt"]["n_dims"] == 2
    assert "data" not in plain
    assert set(plain) | {"data"} == set(PredictionSpec.__dataclass_fields__)
    assert make_spec().to_dict()["split"] is None
    assert make_spec(split=Beyond()).to_dict()["split"] == {"kind": "beyond", "test_share": 0.25, "name": "beyond"}
    with pytest.raises(ParameterError, match="a split must be one of"):
        make_spec(split="soon")


def test_assessors_name_themselves_and_the_reference_is_random_unless_named():
    assert Assessor("2pl").name == "2pl, random"
    assert Assessor("2pl", "adaptation", "fisher", per_cost=True).name == "2pl, adaptive fisher/cost"
    assert Assessor("ridge", name="mine").name == "mine"
    adaptive = Assessor("2pl", "adaptation", "fisher")
    assert make_spec(adaptive, Assessor("mirt")).reference_name == "mirt, random"
    assert make_spec(adaptive).reference_name == "2pl, adaptive fisher"
    assert make_spec(adaptive, Assessor("mirt"), reference=adaptive.name).reference_name == adaptive.name


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
