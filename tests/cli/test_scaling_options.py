import numpy as np
import pytest
from click.testing import CliRunner

from itembank.cli.signatures import verb
from itembank.errors import ParameterError
from itembank.readers.builtin import BUILTIN_RESPONSES, load_builtin
from itembank_scaling.cli.scaling_options import Builtin, Responses, read_responses_or_builtin


@pytest.fixture
def read():
    """Run a command that does nothing but read, and return what it read, or what it said."""

    def run(*words, prefers="correct"):
        found = []

        @verb("read")
        def command(*, responses: Responses, builtin: Builtin):
            found.append(read_responses_or_builtin(responses, builtin, prefers=prefers))

        result = CliRunner().invoke(command, words)
        assert result.exit_code == (0 if found else 2) or isinstance(result.exception, ParameterError)
        return found[0] if found else result.stderr or str(result.exception)

    return run


@pytest.mark.parametrize("kind", BUILTIN_RESPONSES["bytelms"])
def test_the_kind_of_builtin_data_is_the_one_asked_for(read, kind):
    found = read("--builtin", f"bytelms:{kind}")
    np.testing.assert_array_equal(found.responses, load_builtin("bytelms", response=kind).responses)


def test_a_command_may_prefer_probabilities_which_not_all_data_have(read):
    def kind(name):
        found = read("--builtin", name, prefers="probability")
        return "correct" if np.array_equal(found.responses, load_builtin(name.split(":")[0]).responses) else "another"

    assert kind("classifiers") == "another"
    assert kind("bytelms-samples") == "correct"
    assert kind("classifiers:correct") == "correct"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "Give either RESPONSES or --builtin"),
        (("--builtin", "nowhere"), "built-in data must be one of"),
        (("--builtin", "bytelms-samples:probability"), "must be one of 'correct', got 'probability'"),
    ],
)
def test_what_builtin_data_do_not_have_is_refused(read, words, text):
    assert text in read(*words)
