"""Arguments of lm_eval's command, and releases that fit, told apart without lm_eval."""

import sys
import types

import pytest

from itembank.errors import DataError, MissingDependencyError, ParameterError
from itembank_harnesses.lm_eval.command import HarnessCall, import_plugin, run_command
from itembank_harnesses.lm_eval.patches import HarnessError, check_release


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        *((spelling, "--samples") for spelling in ("--samples", "--samples={}", "--sampl", "-E")),
        *((spelling, "--limit") for spelling in ("--limit", "-L", "-L10")),
        *((spelling, "--log_samples") for spelling in ("--log_samples", "--log", "-s")),
        *((spelling, "--output_path") for spelling in ("--output_path", "-o")),
        *((spelling, "--predict_only") for spelling in ("--predict_only", "-x")),
    ],
)
def test_arguments_that_a_run_decides_are_refused_under_their_names(argument, name):
    with pytest.raises(ParameterError, match=f"^{name} must be left out"):
        HarnessCall.of(["--model", "hf", argument, "5"])


@pytest.mark.parametrize("argument", ["--model", "-m", "--seed", "--system_instruction", "--num_fewshot", "--", "-5"])
def test_other_arguments_go_through(argument):
    assert HarnessCall.of([argument, "x"]).arguments == (argument, "x")


def test_the_command_run_may_be_said_and_others_not():
    assert HarnessCall.of(["run", "--model", "hf"]).arguments == ("--model", "hf")
    with pytest.raises(ParameterError, match="its command run, got 'ls'"):
        HarnessCall.of(["ls", "tasks"])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--model_args", "pretrained=org/m,dtype=float16"], "org/m"),
        (["--model_args=pretrained=org/m"], "org/m"),
        (["-a", "revision=x", "pretrained=org/m", "--seed", "1"], "org/m"),
        (["--model_args", '{"model": "gpt", "n": 2}'], "gpt"),
        (["--model_args", "skill=0.5"], ""),
        ([], ""),
    ],
)
def test_the_model_is_called_what_its_arguments_say(arguments, name):
    assert HarnessCall.of(arguments).model_id == name


def test_a_call_without_its_model_keeps_the_rest():
    kept = ("--model_args", "a=1", "b=-2", "--seed", "-1", "--tasks", "t")
    call = HarnessCall.of(("-m", "hf", *kept[:3], "--apply_chat_template", "x", *kept[3:]))
    assert call.without_model().arguments == (*kept, "--model", "dummy")
    assert call.values("--seed") == ["-1"]
    assert call.has("--tasks")
    assert not call.has("--limit")


def test_the_command_sees_its_arguments_and_prints_on_standard_error(monkeypatch, capsys, tmp_path):
    seen = []

    def cli_evaluate():
        seen.extend(sys.argv)
        print("a table")  # noqa: T201

    monkeypatch.setitem(sys.modules, "lm_eval", types.ModuleType("lm_eval"))
    monkeypatch.setitem(sys.modules, "lm_eval.__main__", types.SimpleNamespace(cli_evaluate=cli_evaluate))
    before = list(sys.argv)
    run_command(HarnessCall.of(["--model", "hf"]), output=tmp_path)
    output = seen[4]
    assert seen == ["lm_eval", "--model", "hf", "--output_path", output, "--log_samples"]
    assert output.startswith(str(tmp_path.parent))  # beside it: whole logs come in
    assert sys.argv == before
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "a table\n")


def test_a_module_is_found_by_its_file_and_a_missing_one_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "registers_models.py").write_text("has_run = True\n")
    import_plugin(str(tmp_path / "registers_models.py"))
    assert sys.modules.pop("registers_models").has_run
    with pytest.raises(DataError, match=r"no_such\.py: there is no such file"):
        import_plugin("no_such.py")
    with pytest.raises(DataError, match="the module 'no_such_module' cannot be imported"):
        import_plugin("no_such_module")


def test_what_answers_depend_on_is_the_same_in_any_order_and_on_any_machine():
    one = HarnessCall.of(("--model", "hf", "--model_args", "pretrained=org/m,dtype=float32,device=cuda:1"))
    other = HarnessCall.of(("--batch_size", "4", "--model_args", "dtype=float32,pretrained=org/m", "--model", "hf"))
    assert one.answering == other.answering == {"--model": "hf", "pretrained": "org/m", "dtype": "float32"}
    as_json = HarnessCall.of(("--model", "hf", "--model_args", '{"pretrained": "org/m", "dtype": "float32"}'))
    assert as_json.answering == one.answering
    sampled = HarnessCall.of((*one.arguments, "--gen_kwargs", "temperature=0.7"))
    assert sampled.answering == {**one.answering, "--gen_kwargs temperature": "0.7"}


@pytest.mark.parametrize(
    ("arguments", "seed"),
    [
        *(((), 1234), (("--seed", "5"), 5), (("--seed=0,1,2,7",), 7)),
        *((("--seed", "0,1,2,None"), None), (("--config", "run.yaml"), None)),
    ],
)
def test_the_seed_of_few_shot_examples(arguments, seed):
    assert HarnessCall.of(arguments).fewshot_seed == seed


def test_arguments_of_the_bank_stand_behind_what_is_given():
    found = {"apply_chat_template": True, "fewshot_as_multiturn": False, "fewshot_random_seed": 7}
    added = HarnessCall.of(()).as_of(found).arguments
    assert added == ("--apply_chat_template", "--fewshot_as_multiturn", "false", "--seed", "0,1234,1234,7")
    given = ("--apply_chat_template", "mine", "--fewshot_as_multiturn", "--seed", "3")
    assert HarnessCall.of(given).as_of(found).arguments == given
    assert HarnessCall.of(("--config", "run.yaml")).as_of(found).arguments == ("--config", "run.yaml")


def evaluate(lm, task_dict, limit=None, log_samples=True, bootstrap_iters=0):
    """As the harness's."""


def put_in_place(monkeypatch, task, function=evaluate):
    evaluator, api = types.SimpleNamespace(evaluate=function), types.SimpleNamespace(Task=task)
    root = types.SimpleNamespace(evaluator=evaluator)
    for name, module in {"": root, ".evaluator": evaluator, ".api": api, ".api.task": api}.items():
        monkeypatch.setitem(sys.modules, f"lm_eval{name}", module)


class Fits:
    def build_all_requests(self, *, rank=0, world_size=1, limit=None, more=None):
        """As the harness's."""

    def doc_iterator(self, *, rank=0, world_size=1, limit=None):
        """As the harness's."""


class Renamed(Fits):
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
