"""Banks of logs, published: without secrets, and run with their own items."""

import sys
from pathlib import Path

import polars as pl
import pytest

from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection
from itembank.files.hub import HubName
from itembank_living.publishing.hub import PushSpec, stage
from tests.harnesses.lm_eval.conftest import N_ITEMS
from tests.harnesses.lm_eval.test_run_command import own_tasks_only, read_logs  # noqa: F401 (a fixture)

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
NEW = ("--model", "simulated", "--model_args", "skill=0.6,seed=99,model=new")


@pytest.fixture(scope="module")
def tasks(simulated, tmp_path_factory):
    """A folder of tasks with a group that changes shots."""
    folder = simulated.write_tasks(tmp_path_factory.mktemp("home") / "tasks", N_ITEMS)
    (folder / "exam.yaml").write_text(GROUPS)
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


def bytes_below(folder):
    """Everything that stands in the files of a folder, and their names; also what is compressed."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    tables = [pl.read_parquet(path).write_json().encode() for path in files if path.suffix == ".parquet"]
    return b"".join([*tables, *(path.relative_to(folder).as_posix().encode() + path.read_bytes() for path in files)])


def staged(folder, to, **choices):
    """What a push of a bank would send."""
    stage(load_bank(folder), to, HubName("me/bank"), PushSpec(**choices))
    return bytes_below(to)


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
def test_a_published_bank_is_run_with_its_own_items_by_folder_and_by_name(run, bank, tasks, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.ok("publish-tiny", bank, "-n", 40, "-o", "tiny")
    chosen = set(Selection.load("tiny/selection.json").item_ids)
    hub.put("me/tiny", Path("tiny"))
    sys.path.insert(0, str(tasks))
    try:
        for place, output in (("tiny", "one"), ("hf:me/tiny", "two")):
            words = ("run", "lm-eval", place, "-o", output, "--format", "json", "--import")
            done = run.ok(*words, "simulated_lm", "--", *NEW, "--include_path", tasks, "--tasks", "exam")
            assert "Running the 40 items that the bank was published with." in done.err
            assert {f"{task}/{number}" for task, number, _ in read_logs(Path(output))} == chosen
    finally:
        sys.path.remove(str(tasks))
    done = run("run", "lm-eval", bank_without_items(), "-o", "three", "--", *NEW)
    assert done.code == 2
    assert "Say which items to run" in done.err


def bank_without_items():
    """A bank that was published, without items to run."""
    from itembank.bank.bank_files import save_bank  # noqa: PLC0415
    from itembank_living import without_responses  # noqa: PLC0415
    from tests.bank.banks import make_bank  # noqa: PLC0415

    save_bank(without_responses(make_bank()), "none")
    return "none"
