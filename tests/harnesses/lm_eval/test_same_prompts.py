"""Chosen items are run with the prompts of the full run: every row equals the full run's."""

import sys
import threading
import types

import numpy as np
import pytest

from itembank.errors import IntegrityError, ParameterError
from itembank_harnesses import selected
from itembank_harnesses.lm_eval.patches import HarnessError
from tests.harnesses.lm_eval.conftest import N_ITEMS
from tests.harnesses.lm_eval.rows import check_same_rows, random_items, rows_of

pytestmark = [pytest.mark.harness, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", params=[1, 3])
def repeats(request):
    """Texts that are generated for an item."""
    return request.param


@pytest.fixture(scope="module")
def full(simulated, evaluate, repeats):
    """Rows of a full run."""
    return rows_of(evaluate(simulated.SimulatedLM(skill=0.6, seed=99), repeats=repeats))


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_random_items_are_those_of_the_full_run(new_model, evaluate, full, repeats, seed):
    items = random_items(np.random.default_rng(seed), N_ITEMS)
    with selected(items) as tasks:
        by_group = rows_of(evaluate(new_model, repeats=repeats))
        by_name = rows_of(evaluate(new_model, tasks, repeats=repeats))
    assert {item.partition("/")[0] for item in items} == set(tasks)
    check_same_rows(by_group, full, items)
    check_same_rows(by_name, full, items)


def test_the_cache_of_requests_stays_right_for_one_choice_after_another(
    new_model, evaluate, full, repeats, tmp_path, monkeypatch
):
    from lm_eval.caching import cache  # noqa: PLC0415

    monkeypatch.setattr(cache, "PATH", str(tmp_path))
    for seed in (1, 2, 3):
        items = random_items(np.random.default_rng(seed), N_ITEMS)
        with selected(items):
            check_same_rows(rows_of(evaluate(new_model, repeats=repeats, cache_requests=True)), full, items)
    assert len(list(tmp_path.iterdir())) == 3
    assert rows_of(evaluate(new_model, repeats=repeats, cache_requests=True)) == full


class Ranks:
    """A run on several ranks, each in a thread, and what they tell each other."""

    def __init__(self, n):
        self.n, self.barrier, self.told = n, threading.Barrier(n, timeout=60), {}
        self.found, self.failed = [None] * n, []

    def gather(self, rank, value):
        """Everything that the ranks gave, in their order."""
        self.barrier.wait()
        self.told[rank] = value
        self.barrier.wait()
        return [self.told[k] for k in range(self.n)]

    def run(self, evaluate):
        """Let every rank evaluate; what it returns is in `found`."""
        threads = [threading.Thread(target=self._run_one, args=(evaluate, rank)) for rank in range(self.n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.failed

    def _run_one(self, evaluate, rank):
        try:
            self.found[rank] = evaluate(rank)
        except BaseException as error:  # noqa: BLE001 (of another thread)
            self.failed.append(error)
            self.barrier.abort()


class Count:
    """As much of a tensor as the harness asks for."""

    def __init__(self, value, device=None):
        self.value = value

    def cpu(self):
        return self

    detach = numpy = cpu

    def tolist(self):
        return self.value


def ranked(kind, ranks, rank):
    """Return a simulated model of one rank."""

    class Ranked(kind):
        def all_gather(self, tensor):
            return Count(ranks.gather(rank, tensor.value))

        def gather_object(self, obj, dst=0):
            return ranks.gather(rank, obj)

        def barrier(self):
            ranks.barrier.wait()

    lm = Ranked(skill=0.6, seed=99)
    lm._rank, lm._world_size = rank, ranks.n
    return lm


def loaded_tasks(manager):
    """Load all tasks, as `simple_evaluate` makes them ready."""
    loaded = manager.load(["quiz"])
    for task in loaded["tasks"].values():
        task.set_fewshot_seed(1234)
    return loaded


@pytest.mark.parametrize("n_ranks", [1, 2, 3, 4])
def test_ranks_share_the_chosen_items(simulated, manager_of, full, repeats, n_ranks):
    from lm_eval import evaluator  # noqa: PLC0415

    for seed in range(5):
        rng, ranks = np.random.default_rng(seed), Ranks(n_ranks)
        items = [f"{task}/{k}" for task, n in N_ITEMS.items() for k in rng.choice(n, 5, replace=False)]
        loaded = [loaded_tasks(manager_of(repeats)) for _ in range(n_ranks)]

        def evaluate(rank, ranks=ranks, items=items, loaded=loaded):
            lm = ranked(simulated.SimulatedLM, ranks, rank)
            with selected(items):
                return evaluator.evaluate(lm=lm, task_dict=loaded[rank], bootstrap_iters=0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "torch", types.SimpleNamespace(tensor=Count))
            ranks.run(evaluate)
        assert ranks.found[1:] == [None] * (n_ranks - 1)
        check_same_rows(rows_of(ranks.found[0]), full, items, is_padded=n_ranks > 1)


def test_fewer_chosen_items_than_ranks_are_refused(simulated, manager_of):
    task = manager_of().load(["sums"])["tasks"]["sums"]
    task.set_fewshot_seed(1234)
    with selected(["sums/3", "sums/5"]), pytest.raises(HarnessError, match="each of 3 ranks, got 2"):
        task.build_all_requests(rank=0, world_size=3)


def functions():
    """The functions that runs take the place of."""
    import lm_eval  # noqa: PLC0415
    from lm_eval import evaluator  # noqa: PLC0415
    from lm_eval.api.task import Task  # noqa: PLC0415

    return Task.build_all_requests, Task.doc_iterator, evaluator.evaluate, lm_eval.evaluate


def test_the_harness_is_as_it_was_after_a_run_and_after_an_error(new_model, evaluate):
    before = functions()
    with selected(["sums/1"]):
        assert all(one is not other for one, other in zip(functions(), before, strict=True))
        with selected(["words/1"]):
            assert {key[0] for key in rows_of(evaluate(new_model))} == {"words"}
        assert {key[0] for key in rows_of(evaluate(new_model))} == {"sums"}
    assert functions() == before
    with pytest.raises(RuntimeError, match="broken"), selected(["sums/1"]):
        new_model.loglikelihood = lambda requests: (_ for _ in ()).throw(RuntimeError("broken"))
        evaluate(new_model)
    assert functions() == before


def test_other_threads_run_everything(simulated, evaluate, manager_of):
    other = []
    with selected(["sums/1"]):
        thread = threading.Thread(target=lambda: other.append(evaluate(simulated.SimulatedLM(), ["products"])))
        thread.start()
        thread.join()
    assert len(other[0]["samples"]["products"]) == N_ITEMS["products"]


@pytest.mark.parametrize(("name", "value"), [("limit", 5), ("samples", {"sums": [1]})])
def test_parts_of_the_chosen_items_are_refused(new_model, evaluate, name, value):
    with selected(["sums/1"]), pytest.raises(ParameterError, match=f"got {name} too"):
        evaluate(new_model, **{name: value})


def test_a_run_without_metrics_is_refused(new_model, evaluate):
    with selected(["sums/1"]), pytest.raises(ParameterError, match="got predict_only"):
        evaluate(new_model, predict_only=True)


def test_a_task_that_is_not_loaded_is_named(new_model, evaluate):
    with selected(["sums/1", "words/2"]), pytest.raises(ParameterError, match="without 'words'"):
        evaluate(new_model, ["calculating"])


def test_changed_and_absent_documents_are_refused_before_the_first_request(new_model, evaluate, bank, tmp_path):
    from dataclasses import replace  # noqa: PLC0415

    import polars as pl  # noqa: PLC0415

    new_model.calls = tmp_path / "calls"
    changed = pl.when(pl.col("item_id") == "sums/3").then(pl.lit("another")).otherwise("content_hash")
    items = bank.responses.items.with_columns(changed.alias("content_hash"))
    other = replace(bank, responses=replace(bank.responses, items=items))
    with selected(["sums/2", "sums/3"], bank=other), pytest.raises(IntegrityError, match="another content: 'sums/3'"):
        evaluate(new_model)
    with selected(["sums/2", "sums/999"]), pytest.raises(IntegrityError, match="none of 1: 'sums/999'"):
        evaluate(new_model)
    assert not new_model.calls.exists()
