import numpy as np
import pytest

from itembank.errors import DataError, ParameterError
from itembank_studies.prediction.prepared import (
    budgets_of,
    calibration_task_counts,
    find_tasks,
    make_partition,
)
from itembank_studies.split_specs import Beyond
from itembank_studies.splits import folds_of
from tests.studies.prediction.simulated import make_responses, make_spec

RESPONSES = make_responses()


def test_tasks_are_those_that_are_large_enough():
    responses = RESPONSES.take(items=np.arange(24 * 3 + 10))  # the fourth has ten items
    tasks = find_tasks(make_spec(n_held_out=9), responses)
    assert tasks.names == ("task-0", "task-1", "task-2")
    assert tasks.n_items.tolist() == [24, 24, 24]
    assert tasks.n_held_out.tolist() == [9, 9, 9]
    assert (tasks.index == np.concatenate([np.repeat([0, 1, 2], 24), np.full(10, -1)])).all()
    assert find_tasks(make_spec(), responses).n_held_out.tolist() == [12, 12, 12]  # at most half


def test_a_task_can_be_a_part_of_a_column():
    tasks = find_tasks(make_spec(task_pattern="^task-[0-3]"), RESPONSES)
    assert tasks.names == ("(none)", "task-0", "task-1", "task-2", "task-3")
    assert tasks.n_items.tolist() == [48, 24, 24, 24, 24]


def test_too_few_tasks_are_refused_with_what_to_do():
    with pytest.raises(DataError, match=r"at least two tasks of 16 items or more are needed, got 1 of 1 .* 'all'"):
        find_tasks(make_spec(task="scenario"), RESPONSES)
    with pytest.raises(DataError, match="needs the column 'x'"):
        find_tasks(make_spec(task="x"), RESPONSES)


def test_at_most_half_of_the_tasks_are_calibrated_on():
    assert calibration_task_counts(make_spec(n_calibration_tasks=(1, 2, 4, 16)), 6) == (1, 2, 3)


def test_budgets_are_what_the_largest_tasks_hold():
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


def test_a_study_says_which_models_it_tests():
    assert make_spec().to_dict()["split"] is None
    assert make_spec(split=Beyond()).to_dict()["split"] == {"kind": "beyond", "test_share": 0.25, "name": "beyond"}
    with pytest.raises(ParameterError, match="a split must be one of"):
        make_spec(split="soon")
