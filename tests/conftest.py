"""Fixtures that every test may use."""

import gc
import importlib
import json
import os
import sys
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from itembank.cli.main import main
from tests import documented

settings.register_profile("few", max_examples=30, deadline=None)  # other ones in every run
settings.load_profile("few")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect without looking for garbage, a third of the work: what is collected stays until the end."""
    gc.disable()
    try:
        if session.config.args_source == pytest.Config.ArgsSource.TESTPATHS:
            _share_compiling(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _share_compiling(config):
    """Let each worker import other modules first: what one of them compiles, and keeps, the others need not compile.

    All collect in the same order, so that without this each compiles every module of a fresh checkout.
    """
    given = getattr(config, "workerinput", None)
    if given is None or sys.dont_write_bytecode:
        return
    paths = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    first = len(paths) * int(given["workerid"].removeprefix("gw")) // given["workercount"]
    for path in (*paths[first:], *paths[:first]):
        with suppress(Exception, pytest.skip.Exception):  # collecting says what is wrong with it
            importlib.import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts))


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder of reference data: ITEMBANK_SHARED, or `shared` beside the checkout; skips when absent."""
    folder = Path(os.environ.get("ITEMBANK_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"reference data not found at {folder}; set ITEMBANK_SHARED to its folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _documented_keys():
    """Let no command print a JSON key that is not documented."""
    with pytest.MonkeyPatch.context() as patched:
        documented.install(patched)
        yield


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_session(tmp_path_factory):
    """Keep what fixtures of the whole session make out of the user's own cache, which other code may have filled."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ITEMBANK_CACHE", str(tmp_path_factory.getbasetemp() / "caches" / "session"))
        patched.setenv("ITEMBANK_BANKS", str(tmp_path_factory.getbasetemp() / "caches" / "banks"))
        yield


@pytest.fixture(scope="module", autouse=True)
def user_cache(tmp_path_factory):
    """Give the tests of a module a cache folder of their own, and tables the width that they have in a pipe."""
    folder = tmp_path_factory.getbasetemp() / "caches" / uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ITEMBANK_CACHE", str(folder))
        patched.delenv("COLUMNS", raising=False)  # xdist gives its workers those of the terminal
        yield folder


@pytest.fixture
def rng() -> np.random.Generator:
    """Generate the same numbers in every run."""
    return np.random.default_rng(20240614)


@pytest.fixture(scope="module")
def few_folds():
    """Fit banks of few models without three parts of them, not ten: for modules where nothing turns on their number.

    Other processes fit ten all the same.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("itembank.estimation.folds.N_FOLDS_FEW", 3)
        yield


@pytest.fixture
def all_folds(few_folds, monkeypatch):
    """Fit all ten in such a module, where a test asks how often intervals hold or compares with other processes."""
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 10)


@dataclass(frozen=True)
class Outcome:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """What is on standard output, read as JSON."""
        return json.loads(self.out)


class Runner:
    """The command line in this process, called as its entry point is."""

    def __init__(self, capsys, monkeypatch):
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments):
        self._monkeypatch.setattr(sys, "argv", ["itembank", *map(str, arguments)])
        self._capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = self._capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    def ok(self, *arguments):
        """Run a command that must succeed."""
        outcome = self(*arguments)
        assert outcome.code == 0, outcome.err
        return outcome

    def json(self, *arguments):
        """Run a command that must succeed, and return what it prints as JSON."""
        return self.ok(*arguments, "--format", "json").json


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line: `run(...)` whatever becomes of it, `run.ok(...)` where it must succeed."""
    return Runner(capsys, monkeypatch)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Serve an empty stand-in for the Hub, which the client of this process talks to; `hub.close()` ends it."""
    from tests.bank.hub_server import Hub, serving  # noqa: PLC0415 (few tests need it)

    with serving(Hub()) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.address)  # read at its import
        monkeypatch.setenv("HF_TOKEN", "hf_made_up")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        constants = pytest.importorskip("huggingface_hub.constants")
        pattern = served.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", served.address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", pattern)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # tests of lm_eval may have set it
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
        yield served
