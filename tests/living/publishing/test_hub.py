import base64
import dataclasses
import json
import shutil

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import BankError, DataError, ParameterError
from itembank_living import PushSpec, publish_tiny, pull_bank, push
from tests.attacks.conftest import SEED, TIMES
from tests.attacks.mutating import mutate
from tests.bank.banks import make_bank
from tests.bank.hub_server import COMMIT

pytestmark = [pytest.mark.harness, pytest.mark.usefixtures("few_folds")]
FILES = {"README.md", "arrays.safetensors", "bank.json", "items.parquet", "models.parquet", "responses.parquet"}


@pytest.fixture
def folder(tmp_path):
    save_bank(make_bank(), tmp_path / "bank")
    return tmp_path / "bank"


def committed(hub):
    """The files of the last commit, by path."""
    path, content = hub.posted[-1]
    lines = [json.loads(line) for line in content.splitlines()]
    files = [line["value"] for line in lines if line["key"] == "file"]
    return path, {one["path"]: base64.b64decode(one["content"]) for one in files}


def created(hub):
    return json.loads(dict(hub.posted)["/api/repos/create"])


def test_a_push_makes_the_repository_and_commits_a_bank_that_others_can_load(hub, folder, tmp_path):
    hub.repositories["me/bank"] = {"main": {}, "v2": {}}
    done = push(folder, "hf:me/bank", PushSpec(license="cc-by-4.0"))
    assert done.name == f"hf:me/bank@{COMMIT}"
    assert (created(hub)["name"], created(hub)["type"]) == ("bank", "dataset")
    assert "private" not in (created(hub).get("visibility"), "private" if created(hub).get("private") else "")
    assert any("/preupload/main" in path for path, _ in hub.posted)
    path, files = committed(hub)
    assert path == "/api/datasets/me/bank/commit/main"
    assert {one for one in files if not one.startswith("cache/")} == FILES == {*done.files} & FILES
    assert b"license: cc-by-4.0" in files["README.md"]
    for name, content in files.items():
        (tmp_path / "again" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "again" / name).write_bytes(content)
    again, known = (load_bank(one).responses.responses for one in (tmp_path / "again", folder))
    np.testing.assert_array_equal(again, known)
    push(folder, "hf:me/bank@v2")
    assert any(path.endswith("/branch/v2") for path, _ in hub.posted)
    assert committed(hub)[0] == "/api/datasets/me/bank/commit/v2"


def test_private_and_without_responses(hub, folder, tmp_path, run):
    hub.repositories["me/bank"] = {"main": {}}
    outcome = run("push", folder, "hf:me/bank", "--private", "--no-responses", "--quiet", "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    assert created(hub).get("visibility") == "private" or created(hub).get("private") is True
    _, files = committed(hub)
    assert set(files) == FILES
    (tmp_path / "responses.parquet").write_bytes(files["responses.parquet"])
    assert pl.read_parquet(tmp_path / "responses.parquet").height == 0
    assert b"without past models' responses" in files["README.md"]


def test_questions_are_refused_before_anything_is_sent(hub):
    bank = make_bank()
    items = bank.responses.items.with_columns(prompt=pl.lit("2 + 2 ="))
    asking = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=items))
    with pytest.raises(DataError, match="prompt"):
        push(asking, "hf:me/bank")
    assert hub.posted == []


def test_pull_writes_ordinary_files_of_the_bank_alone(hub, folder, tmp_path, run):
    hub.put("me/bank", folder, **{"README.md": b"# hello", "score.py": b"raise SystemExit", "evil/x.sh": b"rm"})
    said = run.ok("pull", "hf:me/bank", "-o", tmp_path / "mine").err
    assert f"Pulled hf:me/bank@{hub.commit_of('me/bank', 'main')[1]}, bank " in said
    mine = [path for path in (tmp_path / "mine").rglob("*") if path.is_file()]
    assert {path.name for path in mine} == FILES
    assert not any(path.is_symlink() for path in mine)
    hub.close()
    assert load_bank(tmp_path / "mine").bank_id == load_bank(folder).bank_id
    assert run("pull", "hf:me/bank", "-o", tmp_path / "mine").code == 1
    run.ok("pull", "hf:me/bank", "-o", tmp_path / "mine", "--force")


@pytest.mark.parametrize(
    "name", ["../../escape", "cache/../../escape", "/escape", "cache/a/../../../escape", "-o", "a\x1b[31m"]
)
def test_no_name_in_a_repository_leaves_its_folder(hub, folder, tmp_path, run, name):
    hub.put("me/bank", folder, **{name: b"x"})
    done = run("pull", "hf:me/bank", "-o", tmp_path / "mine")
    assert done.code in {0, 1, 4}
    assert "--debug" not in done.err
    assert "\x1b" not in done.err
    assert [path for path in tmp_path.rglob("*escape*") if "hub-cache" not in path.parts] == []


def test_a_repository_that_is_damaged_anyhow_is_refused_and_leaves_nothing(hub, folder, tmp_path, run):
    hub.put("me/bank", folder)
    good = dict(hub.repositories["me/bank"]["main"])
    for seed in range(60 * TIMES):
        rng = np.random.default_rng([seed, 3 + SEED])
        name = sorted(good)[seed % len(good)]
        damaged = mutate(good[name], rng, list(good.values()))
        hub.repositories["me/bank"] = {f"v{seed}": {**good, name: damaged}}
        hub.sizes = {name: int(rng.integers(2**40))} if seed % 5 == 0 else {}
        done = run("pull", f"hf:me/bank@v{seed}", "-o", tmp_path / "mine")
        assert (done.code == 0) <= (damaged == good[name] or name == "README.md"), (seed, name)
        assert done.code in {0, 1, 4}, done.err
        assert "--debug" not in done.err, done.err
        assert (tmp_path / "mine").exists() == (done.code == 0)
        shutil.rmtree(tmp_path / "mine", ignore_errors=True)


def test_a_hub_that_is_gone_and_names_of_no_hub_are_said(hub, folder, tmp_path):
    with pytest.raises(ValueError, match="hf:owner/name"):
        pull_bank(folder, tmp_path / "mine")
    hub.close()
    with pytest.raises(BankError, match=r"hf:me/bank cannot be pushed to"):
        push(folder, "hf:me/bank")


def test_a_published_subset_is_pushed_as_it_stands_and_estimated_from_its_name(hub, tmp_path):
    bank = make_bank(n_models=24, n_items=36, n_dims=1, seed=3)
    publish_tiny(bank, tmp_path / "tiny", 12)
    hub.repositories["me/tiny"] = {"main": {}}
    push(tmp_path / "tiny", "hf:me/tiny")
    _, files = committed(hub)
    assert files["README.md"] == (tmp_path / "tiny" / "README.md").read_bytes()
    assert set(files) == {path.name for path in (tmp_path / "tiny").iterdir()}
    with pytest.raises(ParameterError, match=r"the license must be in README\.md"):
        push(tmp_path / "tiny", "hf:me/tiny", PushSpec(license="mit"))
    hub.repositories["me/tiny"]["main"] = files
    answers = (np.random.default_rng(5).random((2, bank.n_items)) < 0.6).astype(float)
    new = ib.ResponseMatrix.create(answers, items=bank.responses.items)
    found, expected = ib.estimate("hf:me/tiny", new).scores, ib.estimate(tmp_path / "tiny", new).scores
    np.testing.assert_array_equal(np.stack([found.value, found.low]), np.stack([expected.value, expected.low]))


def test_commands_take_names_and_are_quiet_when_asked(hub, folder, run):
    hub.put("me/bank", folder)
    outcome = run("--quiet", "info", "hf:me/bank", "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["bank"] == load_bank(folder).bank_id
    run.ok("select", "hf:me/bank@main", "-n", 9, "--method", "random")
