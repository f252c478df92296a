import builtins
import sys
from pathlib import Path

import pytest

from itembank.bank.arguments import as_bank
from itembank.errors import MissingDependencyError, ParameterError
from itembank.files.hub import HubName, is_hub_name, parse_hub_name
from tests.readers.reading import refuses


@pytest.mark.parametrize(("text", "repository", "revision"), [
    ("hf:me/bank", "me/bank", None),
    ("hf:my-org/Bank_2.0@v1.0", "my-org/Bank_2.0", "v1.0"),
    ("hf:me/bank@refs/pr/3", "me/bank", "refs/pr/3"),
    ("hf:me/bank@0f1df7e8c1ba", "me/bank", "0f1df7e8c1ba"),
])  # fmt: skip
def test_a_name_is_parted_and_put_together_again(text, repository, revision):
    assert (parse_hub_name(text), str(parse_hub_name(Path(text)))) == (HubName(repository, revision), text)


@pytest.mark.parametrize(
    "text",
    [
        "hf:bank", "hf:", "hf:me/", "hf:me/bank@", "hf:me/bank/more", "hf:../bank", "hf:me/..", "hf:me/bank@../x",
        "hf:me/ba nk", "hf:me/bank\n", "hf:-me/bank", "hf:me/bank.", "hf:me--you/bank", "hf:me/" + "b" * 96,
        "hf:me/bank@a;b", "hf:me/bänk",
    ],
)  # fmt: skip
def test_what_no_repository_can_be_called_is_refused(text):
    refuses(r"must be named hf:owner/name", parse_hub_name, text, error=ParameterError)


def test_folders_are_no_names_of_the_hub():
    assert not any(map(is_hub_name, ("bank", "./hf:me/bank", Path("a/hf:b"), "hfx/y", "")))
    assert is_hub_name(Path("hf:me/bank"))


@pytest.fixture
def without_client(monkeypatch):
    """Hide huggingface_hub, whether it is installed or not."""
    real = builtins.__import__

    def hidden(name, *rest, **more):
        if name == "huggingface_hub":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", hidden)
    monkeypatch.delitem(sys.modules, "huggingface_hub", raising=False)


def test_the_command_line_names_a_missing_package_and_a_wrong_name(without_client, run):
    refuses("pip install huggingface_hub", as_bank, "hf:me/bank", error=MissingDependencyError)
    outcome = run("info", "hf:me/bank")
    assert outcome.code == 1
    assert "pip install huggingface_hub" in outcome.err
    outcome = run("info", "hf:bank")
    assert outcome.code == 2
    assert "hf:owner/name" in outcome.err
