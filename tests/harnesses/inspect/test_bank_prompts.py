"""A task that asks otherwise than the bank's runs did is refused before a model is called."""

import re

import numpy as np
import pytest

pytest.importorskip("inspect_ai")
import inspect_ai

from itembank.bank.bank_files import save_bank
from itembank.calibration.build import calibrate
from itembank.responses.prompts import PROMPT_SETTINGS
from itembank.responses.responses import ResponseMatrix
from itembank_harnesses.inspect.tasks import solvers_told
from tests.harnesses.inspect.running import OF_INSPECT
from tests.harnesses.inspect.toys import Calls
from tests.readers.logs import read_inspect

pytestmark = OF_INSPECT
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import chain, generate, prompt_template, solver, system_message


@solver
def other(hint="a"):
    return chain(prompt_template("{prompt} " + hint), generate())


@task
def asking(hint: str = "none", n: int = 20):
    samples = [Sample(id=str(k), input=f"Question {k}", target="yes") for k in range(n)]
    solvers = [system_message("Be brief."), prompt_template("{prompt} " + hint), generate()]
    return Task(dataset=MemoryDataset(samples), solver=solvers, scorer=match(), version=VERSION)
"""


def write_task(folder, *changes):
    text = TASK.replace("VERSION", "2")
    for old, new in changes:
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    (folder / "asking.py").write_text(text)
    return folder / "asking.py"


@pytest.fixture(scope="module")
def place(tmp_path_factory, few_folds):
    """A folder with a task and a bank of runs of it with `hint=please`."""
    folder = tmp_path_factory.mktemp("asking")
    path = write_task(folder)
    Calls.reset()
    (log,) = inspect_ai.eval(
        f"{path}@asking",
        task_args={"hint": "please"},
        model="counted/new",
        display="none",
        log_dir=str(folder / "logs"),
    )
    assert log.status == "success", log.error
    items = read_inspect(folder / "logs").items
    assert items[PROMPT_SETTINGS].null_count() == 0
    rng = np.random.default_rng(7)
    skill, difficulty = rng.normal(size=(20, 1)), np.linspace(-1.5, 1.5, len(items))
    responses = (rng.random((20, len(items))) < 1 / (1 + np.exp(-2 * (skill - difficulty)))).astype(float)
    models = [f"past-{number}" for number in range(20)]
    save_bank(calibrate(ResponseMatrix.create(responses, model_ids=models, items=items)), folder / "bank")
    return folder


RIGHT = ("--task-arg", "hint=please")
CASES = {
    "other arguments": ((), (), (), "task arguments hint=please, these have task arguments hint=none"),
    "another version": (RIGHT, (("version=2", "version=3"),), (), "task version 2, these have task version 3"),
    "another system message": (RIGHT, (("Be brief.", "Be long."),), (), "system prompt .*, these have system prompt"),
    "a system message more": (RIGHT, (), ("--system-message", "Hurry"), "system prompt .*, these have system prompt"),
    "other solvers": (RIGHT, (('system_message("Be brief."), ', ""),), (), "these have .*solver prompt_template"),
    "a grader": (
        RIGHT,
        (),
        ("--model-role", "grader=mockllm/g"),
        "had no model roles, these have model roles grader=mock",
    ),
    "a grader with settings": (
        *(RIGHT, (), ("--model-role", "grader={model: mockllm/g, temperature: 0.5}")),
        "had no model roles, these have model roles grader=mockllm/g",
    ),
    "a grader of the task": (
        *(RIGHT, (("Task(", "Task(model_roles={'grader': 'mockllm/g'}, "),), ()),
        "had no model roles, these have model roles grader=mockllm/g",
    ),
    "another solver": (RIGHT, (), ("--solver", "asking.py@other"), "these have .*solver .*other|solver"),
    "another template": (RIGHT, (('{prompt} "', '{prompt}, "'),), (), "solver arguments .*prompt_template.template"),
}
WAYS = {"selection": ("-n", 5), "adaptive": ("--adaptive", "--max-items", 5)}


@pytest.mark.parametrize("option", ["--solver-config", "--run-config", "--generate-config"])
def test_prompts_are_unknown_where_a_file_says_them(option):
    assert solvers_told(None, (option, "own.yaml", "--system-message", "Hurry")) == {}


@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_asks_as_the_bank_s_runs_did_is_taken(run, place, monkeypatch, way, tmp_path):
    monkeypatch.chdir(place)
    words = ("run", "inspect", "bank", "asking.py", *WAYS[way], *RIGHT, "--dry-run", "-o", tmp_path)
    done = run.ok(*words)
    assert "5" in done.out


@pytest.mark.parametrize("case", CASES)
def test_a_task_that_asks_otherwise_is_refused(run, place, monkeypatch, tmp_path, case):
    options, changes, arguments, told = CASES[case]
    write_task(tmp_path / "changed", *changes)
    monkeypatch.chdir(tmp_path / "changed")
    words = ("run", "inspect", place / "bank", "asking.py", "-n", 5, *options, "-o", "out")
    done = run(*words, "--", "--model", "mockllm/m", *arguments)
    assert (done.code, done.out) == (4, ""), done.err
    what = "model roles" if "grader" in case else "prompts"
    assert f"{what} differ for 20 of 20 items: the bank's runs had" in done.err
    assert re.search(told, done.err), done.err
    assert not list(tmp_path.rglob("*.eval"))
    ignored = run.ok(*words, "--ignore-prompts", "--dry-run", "--", *arguments)
    assert "The run goes on with these prompts" in ignored.err
