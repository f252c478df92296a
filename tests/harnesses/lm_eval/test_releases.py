"""Releases of lm_eval that fit, and others."""

import sys
import types

import pytest

from itembank.errors import MissingDependencyError
from itembank_harnesses.lm_eval.patches import HarnessError, check_release


def evaluate(lm, task_dict, limit=None, log_samples=True, bootstrap_iters=0):
    """As the harness's."""


def put_in_place(monkeypatch, task, function=evaluate):
    """Let a made-up harness be imported."""
    evaluator, api = types.ModuleType("lm_eval.evaluator"), types.ModuleType("lm_eval.api.task")
    evaluator.evaluate, api.Task = function, task
    root = types.ModuleType("lm_eval")
    root.evaluator = evaluator
    modules = {"lm_eval": root, "lm_eval.evaluator": evaluator, "lm_eval.api": types.ModuleType("lm_eval.api")}
    for name, module in {**modules, "lm_eval.api.task": api}.items():
        monkeypatch.setitem(sys.modules, name, module)


class Fits:
    """Takes the arguments that are used."""

    def build_all_requests(self, *, rank=0, world_size=1, limit=None, more=None):
        """As the harness's."""

    def doc_iterator(self, *, rank=0, world_size=1, limit=None):
        """As the harness's."""


class Renamed(Fits):
    """Of another release."""

    def doc_iterator(self, *, shard=0, limit=None):
        """Without ranks."""


def test_a_release_whose_functions_take_our_arguments_fits_and_without_one_the_package_is_named(monkeypatch):
    put_in_place(monkeypatch, Fits)
    check_release()
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(MissingDependencyError, match=r"needs lm_eval, .*pip install 'lm_eval>="):
        check_release()


@pytest.mark.parametrize(
    ("task", "function", "name"),
    [
        (Renamed, evaluate, "Task.doc_iterator"),
        (object, evaluate, "Task.build_all_requests"),
        (Fits, lambda lm: None, "evaluate"),
    ],
)
def test_another_is_refused_and_the_message_says_which_fit(monkeypatch, task, function, name):
    put_in_place(monkeypatch, task, function)
    with pytest.raises(HarnessError, match=rf"must be 0\.4\.5 or newer.*'{name}'"):
        check_release()
