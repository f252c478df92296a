"""What is exported and published: the prompts of the bank's runs, and nothing that nobody meant to publish."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest

from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection
from itembank.errors import DataError
from itembank.files.hub import HubName
from itembank.publishing.hub import PushSpec, stage
from itembank.responses.prompts import N_DIGITS
from tests.harnesses.lm_eval.conftest import N_ITEMS
from tests.harnesses.lm_eval.test_run_command import own_tasks_only, read_logs, stock  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.harness, pytest.mark.filterwarnings("ignore")]
TOKEN = "Zx9TOKEN"  # noqa: S105 (made up)
N_MODELS = 10
GROUPS = """\
group: exam
task:
  - group: oral
    task:
      - {task: sums, num_fewshot: 1}
      - {task: words, description: "Count.", num_fewshot: 0}
  - products
"""
MODULE = "from shared.texts import UNUSED\n\n\ndef in_order(dataset):\n    return dataset\n"
NEW = ("--model", "simulated", "--model_args", "skill=0.6,seed=99,model=new")


@pytest.fixture(scope="module")
def tasks(simulated, tmp_path_factory):
    """A folder of tasks with a group that changes shots, a template, modules, and much that is nobody's business."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "private.txt").write_text(TOKEN)
    folder = simulated.write_tasks(tmp_path_factory.mktemp("home") / "tasks", N_ITEMS)
    (folder / "exam.yaml").write_text(GROUPS)
    text = (folder / "sums.yaml").read_text()
    (folder / "_common_yaml").write_text(text.replace("task: sums\n", ""))
    (folder / "sums.yaml").write_text("task: sums\ninclude: _common_yaml\nprocess_docs: !function utils.in_order\n")
    (folder / "utils.py").write_text(MODULE)
    (folder / "shared").mkdir()
    (folder / "shared" / "__init__.py").write_text("")
    (folder / "shared" / "texts.py").write_text("UNUSED = 1\n")
    (folder / "other.yaml").write_text(f"task: other\ndoc_to_text: {TOKEN}\n")
    (folder / "other.py").write_text(f"# {TOKEN}\n")
    (folder / "keys.jsonl").write_text(json.dumps({"key": TOKEN}) + "\n")
    (folder / ".env").write_text(f"KEY={TOKEN}\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text(f"url = https://me:{TOKEN}@host/x\n")
    (folder / "link.yaml").symlink_to(outside / "private.txt")
    (folder / "linked").symlink_to(outside)
    return folder


@pytest.fixture(scope="module")
def bank(simulated, tasks, runs_of, few_folds):
    """A bank of runs by the group, whose results files say a token and a home folder."""
    from lm_eval.tasks import TaskManager  # noqa: PLC0415

    sys.path.insert(0, str(tasks))
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    told, reading = f",token={TOKEN},path=/home/{TOKEN}/m", ("--spec", 'model_id_from = "args"')
    arguments = {"tasks": ["exam"], "task_manager": manager, "reading": reading}
    folder = runs_of(simulated.SimulatedLM, N_MODELS, told, **arguments)
    sys.path.remove(str(tasks))
    return folder / "bank"


@pytest.fixture
def published(run, bank, tasks, tmp_path, monkeypatch):
    """Publish a subset with its tasks, then take the original tasks away."""
    monkeypatch.chdir(tmp_path)

    def publish(*words):
        done = run("publish-tiny", bank, "-n", 40, "-o", "tiny", "--tasks", "--include-path", tasks, *words)
        assert done.code == 0, done.err
        return done

    return publish


def bytes_below(folder):
    """Everything that stands in the files of a folder, and their names; also what is compressed."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    tables = [pl.read_parquet(path).write_json().encode() for path in files if path.suffix == ".parquet"]
    return b"".join([*tables, *(path.relative_to(folder).as_posix().encode() + path.read_bytes() for path in files)])


def staged(folder, to, **choices):
    """What a push of a bank would send."""
    stage(load_bank(folder), to, HubName("me/bank"), PushSpec(**choices))
    return bytes_below(to)


@pytest.mark.usefixtures("own_tasks_only")
def test_a_stranger_gets_the_prompts_of_the_banks_runs(published, tasks, bank, stock, tmp_path, capsys):  # noqa: F811
    done = published("--include-data")
    assert "The group 'exam' changes description of 'words'" in done.err
    chosen = Selection.load("tiny/selection.json")
    shutil.copytree("tiny", tmp_path / "stranger" / "tiny")
    os.chdir(tmp_path / "stranger")
    away = tasks.rename(tasks.with_name("away"))
    sys.path.insert(0, str(tmp_path / "stranger" / "tiny" / "tasks" / "original"))
    try:
        command = re.search(r"^lm_eval (.*) --model", Path("tiny/README.md").read_text(), re.MULTILINE)[1]
        stock(*NEW, *command.split(), "--log_samples", "--output_path", "out")
    finally:
        away.rename(tasks)
        del sys.path[0]
    items = load_bank(bank).responses.items
    known = dict(zip(items["item_id"], items["prompt_hash"], strict=True))
    logged = read_logs(Path("out"), prefix="tiny_")
    found = {f"{task}/{number}": row["prompt_hash"][:N_DIGITS] for (task, number, _), row in logged.items()}
    assert set(found) == set(chosen.item_ids)
    unlike = {item.partition("/")[0] for item, prompt in found.items() if prompt != known[item]}
    assert unlike == {"words"}  # as was said: a description by the group
    assert {item.partition("/")[0] for item in found} == set(N_ITEMS)
    (results,) = Path("out").rglob("results_*.json")
    assert json.loads(results.read_text())["versions"]["tiny_sums"] == 1.0
    about = Path("tiny/tasks/README.md").read_text()
    assert "| tiny&#95;sums" in about or "tiny\\_sums" in about
    assert "1 shot, task version 1" in about
    assert "exact\\_match | strict-match" in about


def test_only_what_the_chosen_tasks_need_is_published(published, tmp_path):
    done = published()
    original = Path("tiny/tasks/original")
    assert {path.relative_to(original).as_posix() for path in original.rglob("*") if path.is_file()} == {
        *("sums.yaml", "products.yaml", "words.yaml", "_common_yaml", "utils.py"),
        *("shared/__init__.py", "shared/texts.py"),
    }
    assert re.search(r"^ +[\d,]+  tasks/original/utils\.py$", done.err, re.MULTILINE)
    assert "data files of the tasks stay where they are" in done.err
    assert "the data files of the tasks" in Path("tiny/README.md").read_text()
    for found in (bytes_below(Path("tiny")), staged("tiny", tmp_path / "staged")):
        assert TOKEN.encode() not in found
        assert b"What is 10" not in found
    assert (tmp_path / "staged" / "tasks" / "original" / "utils.py").is_file()


def test_data_goes_where_it_is_asked_for_and_is_refused_elsewhere(published, tmp_path):
    published("--include-data")
    data = sorted(path.name for path in Path("tiny/tasks").rglob("*.jsonl"))
    assert data == sorted(f"{name}-{split}.jsonl" for name in N_ITEMS for split in ("test", "train"))
    assert "with questions and answers" in Path("tiny/README.md").read_text()
    with pytest.raises(DataError, match=r"original/products-test\.jsonl \(data\)"):
        staged("tiny", tmp_path / "refused")
    found = staged("tiny", tmp_path / "staged", include_data=True)
    assert b"What is 10" in found
    assert TOKEN.encode() not in found


def test_a_bank_of_logs_with_a_token_is_pushed_without_it(bank, tmp_path):
    found = staged(bank, tmp_path / "staged")
    assert TOKEN.encode() not in found
    models = load_bank(tmp_path / "staged").responses.models
    assert "model_args" not in models.columns
    assert models["model_id"].to_list()[0] == "model=m0,token=***,path=~/m"
    assert "Left out: model\\_args." in (tmp_path / "staged" / "README.md").read_text()
    kept = staged(bank, tmp_path / "kept", include_columns=("model_args",))
    assert TOKEN.encode() not in kept
    assert "model_args" in load_bank(tmp_path / "kept").responses.models.columns


@pytest.mark.usefixtures("own_tasks_only")
def test_a_published_bank_is_run_with_its_own_items_by_folder_and_by_name(run, published, tasks, hub, capsys):
    published()
    chosen = set(Selection.load("tiny/selection.json").item_ids)
    hub.put("me/tiny", Path("tiny"))
    sys.path.insert(0, str(tasks))
    try:
        for place, output in (("tiny", "one"), ("hf:me/tiny", "two")):
            words = ("run", "lm-eval", place, "-o", output, "--format", "json", "--import")
            done = run(*words, "simulated_lm", "--", *NEW, "--include_path", tasks, "--tasks", "exam")
            assert done.code == 0, done.err
            assert "Taken are the 40 items that the bank was published with." in done.err
            assert {f"{task}/{number}" for task, number, _ in read_logs(Path(output))} == chosen
    finally:
        sys.path.remove(str(tasks))
    done = run("run", "lm-eval", bank_without_items(), "-o", "three", "--", *NEW)
    assert done.code == 2
    assert "Say which items to run" in done.err


def bank_without_items():
    """A bank that was published, without items to run."""
    from itembank.bank.bank_files import save_bank  # noqa: PLC0415
    from itembank.publishing import without_responses  # noqa: PLC0415
    from tests.bank.banks import make_bank  # noqa: PLC0415

    save_bank(without_responses(make_bank()), "none")
    return "none"
