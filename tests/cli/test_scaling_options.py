import click
import numpy as np
import pytest
from click.testing import CliRunner

from itembank.cli.command import READING, under_headings
from itembank.cli.main import cli
from itembank.cli.reading_options import items_option, models_option
from itembank.cli.scaling_options import BUILTIN_KINDS, read_responses_or_builtin, responses_or_builtin
from itembank.readers.builtin import BUILTIN_RESPONSES, load_builtin

COMMANDS = ("pretrain", "test-time", "transfer", "validity")


def reading_options(command):
    """Names of the options of reading of a command, tables of models and items among them."""
    known = cli.get_command(None, "scaling").commands[command]
    headed = under_headings(known, click.Context(known))[READING]
    return [one.name for one in known.params if one in headed or (one.name in {"models", "items"} and not one.multiple)]


@pytest.fixture
def read():
    """Run a command that does nothing but read, and return what it read, or what it said."""

    def run(*words, kind="metric", default_map=None, env=None):
        found = []

        @click.command()
        @responses_or_builtin(models_option, items_option)
        def command(*, responses, builtin, reading):
            found.append(read_responses_or_builtin(responses, builtin, reading, kind=kind))

        result = CliRunner().invoke(command, words, default_map=default_map, env=env, auto_envvar_prefix="READ")
        assert result.exit_code == (0 if found else 2)
        return found[0] if found else result.stderr

    return run


@pytest.mark.parametrize(
    ("command", "name"),
    [(command, name) for command in COMMANDS for name in reading_options(command) if name != "response"],
)
def test_an_option_of_reading_is_refused_beside_builtin_data(command, name, tmp_path):
    (tmp_path / "table.csv").write_text("model_id\n")
    (option,) = [one for one in cli.get_command(None, "scaling").commands[command].params if one.name == name]
    values = {"models": str(tmp_path / "table.csv"), "items": str(tmp_path / "table.csv"), "columns": "a=b",
              "max_response": "1", "max_memory": "8GB", "repeats": "count", "task_names": "a=b"}  # fmt: skip
    value = [] if option.is_flag else [values.get(name, "nonsense")]
    words = ["scaling", command, "--builtin", "bytelms", option.opts[0], *value]
    result = CliRunner().invoke(cli, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"got {option.opts[0]}. Leave it out." in result.stderr


def test_the_kind_of_builtin_data_is_the_one_asked_for(read):
    for name, kinds in BUILTIN_KINDS.items():
        assert set(kinds.values()) == set(BUILTIN_RESPONSES[name])
    for response, kind in BUILTIN_KINDS["bytelms"].items():
        found = read("--builtin", "bytelms", "--response", response)
        np.testing.assert_array_equal(found.responses, load_builtin("bytelms", response=kind).responses)


def test_a_command_may_prefer_probabilities_which_not_all_data_have(read):
    def kind(name, *words):
        found = read("--builtin", name, *words, kind="probability")
        return "correct" if np.array_equal(found.responses, load_builtin(name).responses) else "another"

    assert kind("classifiers") == "another"
    assert kind("bytelms-samples") == "correct"
    assert kind("classifiers", "--response", "metric") == "correct"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "one of the two"),
        (("--builtin", "nowhere", "--metric", "a"), "got --metric. Leave it out"),
        (("--builtin", "bytelms", "--metric", "a", "--model-id", "b"), "got --metric, --model-id. Leave them out"),
        (("--builtin", "bytelms", "--response", "accuracy"), "'probability-per-character' with --builtin bytelms, got"),
        (("--builtin", "bytelms-samples", "--response", "probability"), "must be one of 'metric', 'accuracy' with"),
    ],
)
def test_what_builtin_data_do_not_have_is_refused(read, words, text):
    assert text in read(*words)


def test_options_given_elsewhere_count_too(read):
    words = ("--builtin", "bytelms")
    assert "--repeats in the file of --config" in read(*words, default_map={"repeats": "count"})
    assert "--repeats in the environment" in read(*words, env={"READ_REPEATS": "count"})
