"""Multistage tests inside Inspect: the second stage follows from the first, and nothing is paid twice."""

import warnings

import numpy as np
import pytest

pytest.importorskip("inspect_ai")
import inspect_ai

from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection
from itembank.errors import DataWarning
from itembank.estimation.estimate import estimate
from itembank.harnesses.inspect.samples import estimated_metrics
from itembank.harnesses.inspect.tasks import stages
from itembank.planning.select import next_stage, select
from itembank.readers.read import read_inspect
from itembank.readers.reading_specs import ReadingSpec
from tests.harnesses.inspect.running import OF_INSPECT, metrics, ours, run
from tests.harnesses.inspect.toys import Calls

pytestmark = OF_INSPECT
WRONG = (3, 5, 8, 13, 14, 17, 20, 21, 22, 24)
N_ITEMS = 9


@pytest.fixture(scope="module")
def routing(bank_path):
    """Path of the first of two stages, of three and six items."""
    path = bank_path.parent / "routing.json"
    select(load_bank(bank_path), N_ITEMS, stages=2).save(path)
    return str(path)


@pytest.fixture(scope="module")
def whole(bank_path, routing, tmp_path_factory):
    """Run that nothing interrupts, and the samples that it paid for."""
    Calls.reset(wrong=WRONG)
    log = run(stages("toy", str(bank_path), routing), tmp_path_factory.mktemp("whole"))
    assert log.status == "success", log.error
    return log, list(Calls.made)


def read(folder):
    with pytest.warns(DataWarning, match="part of their tasks"):
        return read_inspect(folder)


def answers_to(stage, responses):
    return responses.take(items=np.flatnonzero(np.isin(responses.item_ids, stage.item_ids)))


def test_one_run_is_what_two_runs_would_be(whole, bank_path, routing):
    log, paid = whole
    responses = read(log.location)
    first = Selection.load(routing)
    last = next_stage(bank_path, first, answers_to(first, responses))
    assert [f"toy/{number}" for number in paid] == list(last.whole.item_ids)
    assert (first.n_items, last.n_items) == (3, 6)
    row = estimate(bank_path, responses, selection=last).rows()[-1]
    assert [metrics(log)[name] for name in ("overall", "overall_low", "overall_high", "n_items")] == [
        *(pytest.approx(row[name]) for name in ("estimate", "low", "high")), N_ITEMS,
    ]  # fmt: skip
    assert (ours(log)["stages"], ours(log)["n_items"], ours(log)["n_items_full"]) == ([3, 6], N_ITEMS, 24)


def test_the_second_stage_follows_from_the_answers(whole, bank_path, routing, tmp_path):
    Calls.reset()
    assert run(stages("toy", str(bank_path), routing), tmp_path).status == "success"
    first, asked = whole[1][:3], whole[1][3:]
    assert Calls.made[:3] == first
    assert sum(Calls.made[3:]) > sum(asked)  # numbers rise with difficulty, and this model makes no mistake


@pytest.mark.parametrize("dies_after", range(N_ITEMS))
def test_no_sample_is_paid_twice_whenever_the_provider_goes_down(whole, bank_path, routing, tmp_path, dies_after):
    uninterrupted, paid = whole
    Calls.reset(wrong=WRONG, most=dies_after)
    log = run(stages("toy", str(bank_path), routing), tmp_path)
    assert (log.status, len(Calls.made)) == ("error", dies_after)
    Calls.most = N_ITEMS
    (log,) = inspect_ai.eval_retry(log, log_dir=str(tmp_path), display="none")
    assert log.status == "success"
    assert sorted(Calls.made) == sorted(paid)
    assert metrics(log) == metrics(uninterrupted)


def test_an_error_in_the_first_stage_leaves_the_rest(whole, bank_path, routing, tmp_path):
    failing = whole[1][:1]
    Calls.reset(wrong=WRONG, failing=failing)
    log = run(stages("toy", str(bank_path), routing), tmp_path, fail_on_error=False)
    assert log.status == "success", log.error
    assert metrics(log)["n_items"] == N_ITEMS - 1
    assert not set(failing) & set(Calls.made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # that a sample has no answer
        responses = read_inspect(tmp_path, spec=ReadingSpec(empty="keep"))
        first = Selection.load(routing)
        last = next_stage(bank_path, first, answers_to(first, responses))
        row = estimate(bank_path, responses, selection=last).rows()[-1]
    assert metrics(log)["overall"] == pytest.approx(row["estimate"])


def test_nothing_follows_where_no_sample_has_a_score(whole, bank_path, routing, tmp_path):
    Calls.reset(failing=whole[1][:3])
    run(stages("toy", str(bank_path), routing), tmp_path, fail_on_error=False)
    assert not Calls.made
    unknown = estimated_metrics([], bank=str(bank_path), task="toy", routing=routing)
    assert unknown["n_items"] == 0
