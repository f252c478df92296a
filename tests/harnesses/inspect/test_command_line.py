"""Inspect's own command and ours, in processes of their own, on the example that needs no network."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai")

from itembank.bank.bank_files import save_bank
from itembank.files.atomic import held
from itembank.planning.select import select
from itembank_harnesses.readers.inspect_runs import read_log
from itembank_harnesses.readers.inspect_samples import content_hash
from tests.harnesses.inspect.conftest import simulated_bank
from tests.harnesses.inspect.running import OF_INSPECT

pytestmark = OF_INSPECT
REPOSITORY = Path(__file__).resolve().parents[3]
TOY = "inspect_toy.py"
MODEL = ("--model", "mockllm/skill-0.4", "--display", "none")


@pytest.fixture(scope="module")
def place(tmp_path_factory, few_folds):
    """Folder with the example, a bank of it, and a selection."""
    folder = tmp_path_factory.mktemp("command")
    (folder / TOY).write_bytes((REPOSITORY / "examples" / TOY).read_bytes())
    numbers = [(37 * k % 89, 53 * k % 97) for k in range(1, 121)]
    hashes = [content_hash(f"What is {a} + {b}?", str(a + b)) for a, b in numbers]
    bank = simulated_bank(hashes, [f"sum-{a}-{b}" for a, b in numbers], task="toy")
    save_bank(bank, folder / "bank")
    select(bank, 12).save(folder / "selection.json")
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Environment whose itembank is this checkout, with its entry points where an older install has none."""
    paths = [str(REPOSITORY / "src")]
    if not any(one.name == "itembank" for one in entry_points(group="inspect_ai")):
        paths.append(str(with_entry_points(tmp_path_factory.mktemp("installed"))))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def with_entry_points(folder):
    """Copy the metadata of the installed package, with the entry points of this checkout's pyproject.toml."""
    import tomllib  # noqa: PLC0415
    from importlib.metadata import distribution  # noqa: PLC0415

    installed = distribution("itembank")
    info = folder / f"itembank-{installed.version}.dist-info"
    info.mkdir()
    for name in ("METADATA", "RECORD", "direct_url.json"):
        (info / name).write_text(installed.read_text(name), encoding="utf-8")
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def called(environment, place, *words, module="itembank"):
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("task", "more", "n_samples"),
    [("adaptive", ("max_items=10", "batch=5"), 10), ("subset", ("selection=selection.json",), 12)],
)
def test_inspects_own_command_runs_our_tasks(environment, place, task, more, n_samples):
    logs = place / f"logs-{task}"
    given = [word for one in (f"task={TOY}", "bank=bank", *more) for word in ("-T", one)]
    done = called(
        environment, place, "eval", f"itembank/{task}", *given, *MODEL, "--log-dir", logs, module="inspect_ai"
    )
    assert done.returncode == 0, done.stderr
    (path,) = logs.glob("*.eval")
    log = read_log(path)
    assert log.header["status"] == "success"
    assert len(log.samples) == n_samples
    (found,) = [one["metrics"] for one in log.header["results"]["scores"] if one["name"] == "itembank"]
    assert found["overall_low"]["value"] < found["overall"]["value"] < found["overall_high"]["value"]
    assert found["n_items"]["value"] == n_samples


def test_our_command_prints_the_estimate_of_the_log_and_goes_on(environment, place):
    words = ("run", "inspect", "bank", TOY, "--adaptive", "--half-width", "0.01", "--max-items", "8", "-o", "run")
    done = called(environment, place, *words, "--format", "json", "--", *MODEL)
    assert done.returncode == 3, done.stderr  # no such precision from eight items
    (path,) = (place / "run").glob("*.eval")
    (metrics,) = [one["metrics"] for one in read_log(path).header["results"]["scores"] if one["name"] == "itembank"]
    overall = json.loads(done.stdout)["scores"][-1]
    for name, key in (("overall", "estimate"), ("overall_low", "low"), ("overall_high", "high")):
        assert metrics[name]["value"] == pytest.approx(overall[key])
    again = called(environment, place, *words, "--", *MODEL)
    assert (again.returncode, len(list((place / "run").glob("*.eval")))) == (3, 1)
    assert f"{100.0 * overall['estimate']:.1f}" in again.stdout
    with held(place / "run"):  # as an Inspect does whose itembank was killed
        refused = called(environment, place, *words, "--", *MODEL)
    assert (refused.returncode, "another run goes on in this folder" in refused.stderr) == (1, True)
    other = called(environment, place, *words, "--criterion", "drawn", "--", *MODEL)
    assert other.returncode == 1
    assert "holds a run with other choices" in other.stderr


def test_a_gate_runs_until_its_verdict_stands(environment, place, run, monkeypatch):
    monkeypatch.chdir(place)
    baseline = ("--model", "mockllm/skill-1.5", "--display", "none")
    done = called(environment, place, "eval", TOY, *baseline, "--log-dir", "full", module="inspect_ai")
    assert done.returncode == 0, done.stderr
    run.ok("calibrate", "full", "-o", "own")
    run.ok("gate", "start", "full", "--margin", "0.15", "-o", "gate")
    words = ("run", "inspect", "own", TOY, "--gate", "gate", "--format", "json")
    (row,) = json.loads(called(environment, place, *words, "--dry-run", "-o", "twin", "--", *baseline).stdout)["rows"]
    assert (row["n_items_first"], row["n_items"], (place / "twin").exists()) == (50, 120, False)
    for folder, model, code, verdict in (("twin", baseline, 0, "pass"), ("broken", MODEL, 1, "fail")):
        done = called(environment, place, *words, "-o", folder, "--", *model)
        found = json.loads(done.stdout)
        assert (done.returncode, found["verdict"], found["n_items"] < 120) == (code, verdict, True), done.stderr
        (path,) = (place / folder).glob("*.eval")
        assert len(read_log(path).samples) == found["n_items"]
        by_hand = run("gate", "next", "gate", folder, "--format", "json")
        assert by_hand.json == {**found, "notes": []}
    again = called(environment, place, *words, "-o", "broken", "--github", "--junit", "gate.xml", "--", *MODEL)
    assert ("::error title=itembank gate%3A " in again.stderr, (place / "gate.xml").is_file()) == (True, True)
    wrong = called(environment, place, *words, "-o", "none", "--github", "--", "--model", "mockllm/none", "--modle")
    assert (wrong.returncode, "::error title=itembank gate%3A no verdict::" in wrong.stderr) == (5, True), wrong.stderr
    assert (again.stdout, len(list((place / "broken").glob("*.eval")))) == (done.stdout, 1)
