"""Prompts are those of the bank's runs, or the run is refused before its first request."""

import json
import re
import shutil
from itertools import chain

import pytest

from itembank.bank.bank_files import load_bank
from itembank.errors import IntegrityError
from itembank.planning.select import select
from itembank_harnesses import Runner, selected
from tests.cli.session.loops import FAST
from tests.harnesses.lm_eval.conftest import N_ITEMS

pytestmark = [pytest.mark.harness, pytest.mark.filterwarnings("ignore")]
EXAM = """\
group: exam
task:
  - {task: sums, num_fewshot: 1}
  - products
  - words
"""
"""A group that changes the shots of one of its tasks."""
N_MODELS = 10
NEW = "skill=0.6,seed=99,model=new,calls=calls.txt"
LM_EVAL = ("run", "lm-eval", "--import", "simulated_lm")
RUN = ("--include_path", "tasks", "--model", "chatty", "--model_args", NEW)
WAYS = {"selection": ("-n", 9), "adaptive": ("--adaptive", "--max-items", 6, *FAST)}


@pytest.fixture(scope="module")
def chatty(simulated):
    """A simulated model that has a chat template."""
    from lm_eval.api.registry import register_model  # noqa: PLC0415

    class Chatty(simulated.SimulatedLM):
        tokenizer_name = "chatty"

        def chat_template(self, chat_template=False):
            return "template" if chat_template else None

        def apply_chat_template(self, chat_history, add_generation_prompt=True):
            return "".join(f"<{turn['role']}> {turn['content']}\n" for turn in chat_history)

    register_model("chatty")(Chatty)
    return Chatty


@pytest.fixture(scope="module")
def manager(simulated, tmp_path_factory):
    """The simulated tasks with one group more."""
    from lm_eval.tasks import TaskManager  # noqa: PLC0415

    folder = simulated.write_tasks(tmp_path_factory.mktemp("exam"), N_ITEMS)
    (folder / "exam.yaml").write_text(EXAM)
    return TaskManager(include_path=str(folder), include_defaults=False)


@pytest.fixture(scope="module")
def bank_of_runs(chatty, manager, runs_of, few_folds):
    """Make a bank of full runs of the group with these arguments."""
    made = {}

    def bank(**arguments):
        key = json.dumps(arguments)
        if key not in made:
            made[key] = runs_of(chatty, N_MODELS, tasks=["exam"], task_manager=manager, **arguments)
        return made[key]

    return bank


@pytest.fixture
def place(bank_of_runs, simulated, tmp_path, monkeypatch):
    """A folder with the tasks, a bank of runs by the group, and only our tasks in the index."""
    tasks = pytest.importorskip("lm_eval.tasks")
    init = tasks.TaskManager.__init__
    monkeypatch.setattr(
        tasks.TaskManager, "__init__", lambda self, *a, **named: init(self, *a, **{**named, "include_defaults": False})
    )
    simulated.write_tasks(tmp_path / "tasks", N_ITEMS)
    (tmp_path / "tasks" / "exam.yaml").write_text(EXAM)
    shutil.copytree(bank_of_runs() / "bank", tmp_path / "bank")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prompts_in(folder):
    """Hash of the prompt of each item in logs."""
    found = {}
    for path in folder.rglob("samples_*.jsonl"):
        task = re.fullmatch(r"samples_(.+?)_\d{4}-.*", path.name)[1]
        rows = map(json.loads, path.read_text().splitlines())
        found |= {f"{task}/{row['doc_id']}": row["prompt_hash"] for row in rows}
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("more", [(), ("--tasks", "exam")], ids=["by the tasks", "by the group"])
def test_without_arguments_prompts_are_those_of_the_bank(run, place, bank_of_runs, way, more):
    run.ok(*LM_EVAL, "bank", *WAYS[way], "-o", "out", "--", *RUN, *more)
    full, asked = prompts_in(bank_of_runs() / "logs"), prompts_in(place / "out")
    assert asked
    assert any(item.startswith("sums") for item in asked)
    assert asked == {item: full[item] for item in asked}
    (results,) = (place / "out").rglob("results_*.json")
    assert json.loads(results.read_text())["configs"]["sums"]["num_fewshot"] == 1


MISUSES = {
    "no shots": (("--num_fewshot", 0), r"had \d shots?, these have 0 shots"),
    "chat template": (("--apply_chat_template",), "had no chat template.*, these have chat template"),
    "system instruction": (("--system_instruction", "Be brief."), "had no system prompt, these have system prompt"),
    "seed": (("--seed", 5), "had few-shot seed 1234, these have few-shot seed 5"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("misuse", MISUSES)
def test_other_prompts_are_refused_before_the_first_request(run, place, misuse, way):
    more, told = MISUSES[misuse]
    for dry in ((), ("--dry-run",)):
        done = run(*LM_EVAL, "bank", *WAYS[way], *dry, "-o", "out", "--", *RUN, *more)
        assert (done.code, done.out) == (4, ""), done.err
        assert re.search(rf"prompts differ for \d+ of \d+ items: the bank's runs {told}", done.err), done.err
        assert "--ignore-prompts" in done.err
    assert not (place / "calls.txt").exists()
    assert not list((place / "out").glob("session*")) + list((place / "out").glob("*.rows"))


def test_a_changed_task_is_refused(run, place):
    path = place / "tasks" / "products.yaml"
    text = path.read_text().replace("doc_to_text: question", 'doc_to_text: "Q: {{question}}"')
    path.write_text(text.replace("version: 1.0", "version: 2.0"))
    done = run(*LM_EVAL, "bank", "-n", 20, "-o", "out", "--", *RUN)
    assert done.code == 4
    assert "the bank's runs had task version 1, these have task version 2" in done.err
    assert not (place / "calls.txt").exists()


def test_another_version_with_the_same_prompts_is_said(run, place):
    path = place / "tasks" / "products.yaml"
    path.write_text(path.read_text().replace("version: 1.0", "version: 2.0"))
    done = run.ok(*LM_EVAL, "bank", "-n", 20, "-o", "out", "--", *RUN)
    read = run.ok("estimate", "bank", "out")
    for said in (done.err, read.err):
        assert re.search(r"versions differ for \d+ of 20 items: .* had task version 1, these have task version 2", said)


def test_prompts_that_differ_are_run_when_that_is_meant(run, place):
    words = (*LM_EVAL, "bank", "-n", 9, "--ignore-prompts", "-o", "out", "--", *RUN, "--num_fewshot", 0)
    done = run.ok(*words)
    assert done.err.count("The run goes on with these prompts") == 1
    assert done.err.count("prompts differ for 9 of 9 items") == 2  # before the run, and in the notes of its estimates
    assert len(prompts_in(place / "out")) == 9


def test_a_bank_that_does_not_tell_prompts_says_so(run, place, bank_of):
    shutil.rmtree("bank")
    shutil.copytree(bank_of(), "bank")
    from dataclasses import replace  # noqa: PLC0415

    from itembank.bank.bank_files import save_bank  # noqa: PLC0415
    from itembank.responses.prompts import PROMPT_HASH, PROMPT_SETTINGS  # noqa: PLC0415

    bank = load_bank("bank")
    responses = replace(bank.responses, items=bank.responses.items.drop(PROMPT_HASH, PROMPT_SETTINGS))
    save_bank(replace(bank, responses=responses), "untold")
    done = run.ok(*LM_EVAL, "untold", "-n", 4, "--dry-run", "-o", "out", "--", *RUN, "--num_fewshot", 0)
    assert "does not say how its items were asked" in done.err


def test_chat_templates_and_seeds_of_the_bank_are_used(run, place, bank_of_runs):
    folder = bank_of_runs(apply_chat_template=True, fewshot_as_multiturn=True, fewshot_random_seed=7)
    run.ok(*LM_EVAL, folder / "bank", "-n", 9, "-o", "out", "--", *RUN)
    full, asked = prompts_in(folder / "logs"), prompts_in(place / "out")
    assert asked == {item: full[item] for item in asked}
    dry = run.ok(*LM_EVAL, folder / "bank", "-n", 9, "--dry-run", "-o", "dry", "--", *RUN)
    assert "the settings of prompts were compared" in dry.err


def test_a_system_prompt_must_be_given(run, place, bank_of_runs):
    folder = bank_of_runs(system_instruction="Answer with a number.")
    refused = run(*LM_EVAL, folder / "bank", "-n", 9, "-o", "out", "--", *RUN)
    assert refused.code == 4
    assert "knows a digest of the system prompt only" in refused.err
    words = ("--", *RUN, "--system_instruction", "Answer with a number.")
    run.ok(*LM_EVAL, folder / "bank", "-n", 9, "-o", "out", *words)


def test_in_python_too(bank_of_runs, chatty, manager):
    from lm_eval import evaluator  # noqa: PLC0415

    bank, lm = load_bank(bank_of_runs() / "bank"), chatty(skill=0.6, seed=99)
    items = list(chain(*([f"{task}/{k}" for k in range(3)] for task in N_ITEMS)))
    named = {"tasks": list(N_ITEMS), "bank": bank, "task_manager": manager}
    selection = select(bank, 9, rng=0)
    assert Runner(lm, **named).run(selection)
    with pytest.raises(IntegrityError, match=r"had \d shots?, these have 0 shots"):
        Runner(lm, **named, num_fewshot=0).run(selection)
    with selected(items, bank=bank) as tasks, pytest.raises(IntegrityError, match="had 1 shot, these have 3 shots"):
        evaluator.simple_evaluate(lm, tasks=list(tasks), task_manager=manager, bootstrap_iters=0)
