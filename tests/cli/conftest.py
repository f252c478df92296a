import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import itembank as ib
from itembank.cli.main import cli
from tests.bank.banks import make_bank
from tests.conftest import Runner


def holds(text, *parts):
    """Check that a text has all of these words."""
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in {text}"


class Refused(Runner):
    """The command line, with commands that must fail."""

    def fails(self, code, says, *arguments):
        """Run a command that must end with this code, say these words, or all of several, and print nothing."""
        outcome = self(*arguments)
        assert (outcome.code, outcome.out) == (code, ""), outcome.err
        holds(" ".join(outcome.err.split()), *([says] if isinstance(says, str) else says))
        return outcome


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line: `run.fails(...)` where it must fail, and what `tests.conftest` has."""
    return Refused(capsys, monkeypatch)


def offered_methods(command):
    """Names that the help of a command's option `--method` lists."""
    return tuple(next(option for option in command.params if option.name == "method").type.choices)


def spec_file(folder, content):
    """Write a file of rare choices; return the option that takes it."""
    path = folder / "spec.toml"
    path.write_text(content)
    return "--spec", path


def new_results():
    answers = (np.random.default_rng(9).random((2, 30)) < 0.6).astype(float)
    return ib.ResponseMatrix.create(answers, model_ids=["new/a", "new/b"], items=make_bank().responses.items)


@pytest.fixture(scope="session")
def fitted_bank(tmp_path_factory):
    """A small bank of three scenarios on disk, with its fits without some of the models."""
    folder = tmp_path_factory.mktemp("fitted") / "bank"
    make_bank().save(folder)
    ib.prepare(ib.load_bank(folder), keep_in_bank=True)
    return folder


@pytest.fixture
def bank_folder(fitted_bank, tmp_path):
    return shutil.copytree(fitted_bank, tmp_path / "bank")


@pytest.fixture(scope="module")
def made(workplace):
    words = ["study", "run", str(workplace / "study.toml"), "-o", str(workplace / "done"), "--jobs", "1"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def study(made, workplace):
    return workplace / "done"


@pytest.fixture
def without_library(monkeypatch):
    """Leave the charts' library out of pages: to bundle it takes seconds."""
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")
