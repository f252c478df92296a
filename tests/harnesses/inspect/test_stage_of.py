"""Which stage answers have come to; no harness is needed for that."""

from dataclasses import replace

import pytest

from itembank.errors import DataError
from itembank.harnesses.inspect.answers import answers_to, matrix_of
from itembank.harnesses.inspect.estimates import selected_estimates
from itembank.harnesses.inspect.stages import check_routing, stage_of
from itembank.harnesses.inspect.task_items import task_items
from itembank.planning.select import next_stage, select
from tests.harnesses.inspect.conftest import simulated_bank


@pytest.fixture(scope="module")
def bank(few_folds):
    return simulated_bank([f"content {number}" for number in range(30)])


@pytest.fixture(scope="module")
def routing(bank):
    return select(bank, 9, stages=3)


@pytest.fixture(scope="module")
def tested(bank, routing):
    """All stages of a model that answers the easier half right, and its answers."""
    answers = {f"toy/{number}": [float(number <= 15)] for number in range(1, 31)}
    found, told = [routing], dict(answers_to(routing.item_ids, answers))
    while len(found) < 3:
        found.append(next_stage(bank, found[-1], matrix_of(bank, told, "m")))
        told |= answers_to(found[-1].item_ids, answers)
    return found, told


@pytest.mark.parametrize("number", [0, 1, 2])
def test_answers_tell_their_stage(bank, routing, tested, number):
    stages, told = tested
    answered = answers_to(stages[number].whole.item_ids, told)
    part = dict(list(answered.items())[: len(answered) - (number > 0)])  # one of the stage is under way
    for some in (answered, part):
        assert stage_of(bank, routing, some, "m").whole.item_ids == stages[number].whole.item_ids


def test_no_answer_is_the_first_stage(bank, routing):
    assert stage_of(bank, routing, {}) is routing


def test_estimates_take_the_answers_of_all_stages(bank, tested):
    stages, told = tested
    estimates = selected_estimates(bank, told, stages[-1], model_id="m")
    assert estimates is not None
    assert {row["n_items"] for row in estimates.rows()} == {9}


def test_epochs_are_counts_of_trials(bank):
    matrix = matrix_of(bank, {"toy/1": [1.0, 0.0, 1.0], "toy/2": [0.0]}, "m")
    assert matrix.n_trials.tolist() == [[3, 1]]
    assert matrix.responses[0] == pytest.approx([2 / 3, 0.0])


def test_a_first_stage_whose_modules_may_ask_other_tasks_is_refused(bank, routing):
    known = task_items(bank, "toy")
    check_routing(routing, known)
    check_routing(select(bank, 9, stages=2, excluded=["toy/30"]), replace(known, others=("toy/30",)))
    with pytest.raises(DataError, match=r"one task, 'toy', but its stages may ask 1 items of others: 'toy/30'"):
        check_routing(routing, replace(known, others=("toy/30",)))


def test_a_later_stage_or_a_batch_is_no_first_stage(bank, tested):
    known = task_items(bank, "toy")
    for other in (tested[0][1], select(bank, 9)):
        with pytest.raises(DataError, match="needs the selection of a first stage"):
            check_routing(other, known)
