"""How runs of Inspect asked: settings that their logs tell, and mixtures of them."""

import pytest

from itembank.errors import DataError
from itembank.readers.inspect_samples import OWN_SCORER
from itembank.readers.read import read_inspect
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.prompts import settings_by_task, settings_in_words, short_digest
from tests.readers.inspect_writing import header, sample, write_eval

STEPS = [
    {"solver": "system_message", "params": {"template": "Be short."}},
    {"solver": "multiple_choice", "params": {"cot": False, "max_tokens": 5, "template": "T" * 100}},
    {"solver": "generate", "params": {"tool_calls": "loop", "kwargs": {}}},
]


def write(folder, model, *, steps=STEPS, ids=("a", "b"), config=None, **about):
    about = header(model=model, n_items=len(ids), **{"task_version": 2, "task_args": {"cot": False, "n": 40}, **about})
    plan = {"steps": steps, "config": config or {}}
    return write_eval(folder / f"{model.replace('/', '_')}.eval", [sample(one) for one in ids], {**about, "plan": plan})


def settings_of(path, **choices):
    return settings_by_task(read_inspect(path, spec=ReadingSpec(**choices)).items)["toy"]


def test_settings_of_a_log_are_kept(tmp_path):
    settings = settings_of(write(tmp_path, "lab/a"))
    assert settings == {
        "version": "2",
        "task_args": "cot=false, n=40",
        "solver": "system_message > multiple_choice > generate",
        "solver_args": f"multiple_choice.cot=false, multiple_choice.template={short_digest('T' * 100)}",
        "system_prompt": short_digest("Be short."),
    }
    assert settings_in_words(settings).startswith("task version 2, system prompt ")


def test_logs_without_a_plan_tell_little_and_join_everything(tmp_path):
    write(tmp_path, "lab/a")
    bare = header(model="lab/b", n_items=2)
    write_eval(tmp_path / "b.eval", [sample("a"), sample("b")], bare)
    assert settings_of(tmp_path)["version"] == "2"


def test_a_run_that_itembank_started_is_compared_by_the_inner_task(tmp_path):
    write(tmp_path, "lab/a")
    ours = {"task": "toy", "bank": "b1", "n_items_full": 2}
    given = {"task": "demo.py@toy", "bank": "bank", "selection": "s.json", "task_args": {"n": 40}}
    write(tmp_path, "lab/b", task="subset", metadata={OWN_SCORER: ours}, task_args=given)
    assert settings_of(tmp_path)["task_args"] == "cot=false, n=40"
    given = {**given, "task_args": {"cot": True}}
    write(tmp_path, "lab/c", task="subset", metadata={OWN_SCORER: ours}, task_args=given)
    with pytest.raises(DataError, match=r"task 'toy': .*1 model \('lab/c'\) task arguments cot=true"):
        read_inspect(tmp_path)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"task_version": 3}, "task version 3"),
        ({"steps": STEPS[1:]}, "no system prompt"),
        ({"steps": [{**STEPS[0], "params": {"template": "Be long."}}, *STEPS[1:]]}, "system prompt"),
        ({"steps": STEPS[:1] + STEPS[2:]}, "solver system_message > generate"),
        ({"config": {"system_message": "Think."}}, "system prompt"),
    ],
)
def test_mixtures_are_refused_unless_allowed(tmp_path, other, words):
    for model in ("lab/a", "lab/b"):
        write(tmp_path, model)
    write(tmp_path, "lab/c", **other)
    with pytest.raises(DataError, match=rf"in 1 they differ. task 'toy': 2 models .*1 model \('lab/c'\) .*{words}"):
        read_inspect(tmp_path)
    assert "differs" in str(settings_of(tmp_path, allow_mixed_prompts=True))


def test_arguments_that_a_release_adds_and_those_that_change_no_prompt_say_nothing(tmp_path):
    write(tmp_path, "lab/a")
    later = [*STEPS[:1], {"solver": "multiple_choice", "params": {"cot": False, "new": 1, "max_tokens": 9}}, STEPS[2]]
    write(tmp_path, "lab/b", steps=later, task_args={"cot": False, "fresh": True})
    assert settings_of(tmp_path)["task_args"] == "cot=false, fresh=true, n=40"
