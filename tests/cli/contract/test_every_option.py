"""Every option of every command changes the result, is refused, or is listed with a reason.

A new option needs one line in `values` of its command's case (`tests/cli/contract/cases`). Where it has no say in a
mode, mend the command: `itembank.cli.options.refuse_unused` refuses what was typed in vain.
"""

from contextlib import nullcontext

import pytest

import itembank
from itembank.pages import blocks
from itembank.readers import builtin
from itembank.sessions import journal
from itembank_living.changes import descendants
from tests.cli.contract.calls import OUTPUT, carry_out, run
from tests.cli.contract.cases import CASES
from tests.cli.contract.every_option import commands, names_of, options_of
from tests.cli.contract.remembered import Remembered
from tests.cli.contract.world import make_world, small, written_plainly

FAILED = (1, 2, 4, 5)
SLOW = {
    *(("calibrate", name) for name in ("counts", "probabilities", "chosen dims", "mml", "nested")),
    *(("study homogeneity", name) for name in ("table", "figure")),
    ("quickstart", "language models"),
}  # Modes whose calls take long together
SLOW_COMMANDS = {command for command, _ in SLOW}

pytestmark = pytest.mark.usefixtures("few_folds")

PAIRS = [(command, option) for command, one in commands().items() for option in options_of(one)]
MODES = [(command, name) for command, case in CASES.items() for name in case.modes]
QUICK_MODES = [one for one in MODES if one not in SLOW]


def options_in(command, name):
    """The options that are tried in a mode of a command."""
    case, mode = CASES[command], CASES[command].modes[name]
    known = options_of(commands()[command])
    return [one for one in known if one not in case.never and (not mode.about or one in mode.about)]


@pytest.fixture(scope="module")
def remembered():
    with pytest.MonkeyPatch.context() as patch:
        kept = Remembered(OUTPUT)
        kept.install(patch)
        yield kept


@pytest.fixture(scope="module")
def world(tmp_path_factory, few_folds, remembered):
    folder = tmp_path_factory.mktemp("world")
    whole, parts = builtin.load_builtin, {}

    def few(name="classifiers", *, response="correct"):
        if (name, response) not in parts:
            parts[name, response] = small(name, whole(name, response=response))
        return parts[name, response]

    def prepare(words):
        code, _, err = run(words)
        assert code == 0, f"{words}: {err}"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(itembank, "load_builtin", few)  # before what it is looked up in, else this would be kept
        patch.setattr(builtin, "load_builtin", few)
        patch.setattr("itembank.cli.quickstart.N_ITEMS", 16)
        patch.setattr(blocks, "save_picture", written_plainly)
        patch.setattr(descendants, "now", lambda: "2026-01-01T00:00:00Z")
        patch.setattr(journal, "_now", lambda: "2026-01-01T00:00:00Z")  # the time of day is no effect
        with pytest.MonkeyPatch.context() as place:
            place.chdir(folder)
            make_world(folder, prepare)
        yield folder


@pytest.fixture(scope="module")
def outcome(world):
    known = {}

    def of(command, name, option=None):
        if (command, name, option) not in known:
            known[command, name, option] = carry_out(_words(command, name, option), CASES[command].modes[name], world)
        return known[command, name, option]

    return of


def _words(command, name, option):
    """The command line; options of `itembank` itself stand before the command."""
    case = CASES[command]
    mode = case.modes[name]
    added = "" if option is None else mode.values.get(option, case.values[option])
    return f"{command} {mode.words} {added}" if command else f"{added} {mode.words}"


def verdict(outcome, command, name, option):
    """What an option did: 'changed', 'refused', 'stopped', or 'silent'; anything else fails."""
    base, altered = outcome(command, name), outcome(command, name, option)
    case, words = CASES[command], _words(command, name, option)
    assert base.code in case.modes[name].codes, f"the base call of {name!r} fails: {base.err}"
    if altered.code in FAILED and base.code not in FAILED:
        if any(one in altered.err for one in names_of(options_of(commands()[command])[option])):
            return "refused"
        reason = case.stops.get((name, option))
        assert reason is not None, (
            f"itembank {words}: exit code {altered.code}, and the message names no {option}: {altered.err} Mend the "
            "message, take a better value, or list it in `stops` of the case."
        )
        assert reason in altered.err
        return "stopped"
    return "silent" if (base.code, base.result) == (altered.code, altered.result) else "changed"


def test_every_option_has_a_case():
    for command, option in PAIRS:
        assert command in CASES, f"write a Case for {command!r} in tests/cli/contract/cases: modes and option values."
        assert option in CASES[command].values, (
            f"itembank {command} has an option {option} that no case alters. Add to `values` of its case in "
            f"tests/cli/contract/cases: {option} VALUE, which changes the result."
        )


def test_no_case_is_of_an_option_that_is_gone():
    known = {(command, option) for command, option in PAIRS}
    cased = {(command, option) for command, case in CASES.items() for option in case.values}
    assert cased <= known
    listed = {(c, m, o) for c, case in CASES.items() for m, o in (*case.no_effect, *case.stops)}
    listed |= {(c, m, o) for c, case in CASES.items() for m, mode in case.modes.items() for o in mode.values}
    assert listed <= {(command, name, option) for command, name in MODES for option in options_in(command, name)}
    named = {(c, o) for c, case in CASES.items() for o in (*case.never, *case.nowhere)}
    named |= {(c, o) for c, case in CASES.items() for mode in case.modes.values() for o in mode.about}
    assert named <= known
    assert not [(c, o) for c, case in CASES.items() for o in case.never if o in case.nowhere]


@pytest.mark.parametrize("command", dict.fromkeys(command for command, _ in QUICK_MODES))
def test_the_same_call_gives_the_same_result(outcome, world, remembered, command):
    """Else an option might seem to change what chance changes; the first mode also does its fits again."""
    for number, name in enumerate(name for one, name in QUICK_MODES if one == command):
        with remembered.put_aside() if number == 0 else nullcontext():
            again = carry_out(_words(command, name, None), CASES[command].modes[name], world)
        assert again.result == outcome(command, name).result, name


@pytest.mark.parametrize(
    ("command", "name"), [pytest.param(*one, marks=[pytest.mark.slow] * (one in SLOW)) for one in MODES]
)
def test_an_option_changes_the_result_or_is_refused(outcome, command, name):
    assert [problem for one in options_in(command, name) if (problem := _problem(outcome, command, name, one))] == []


def _problem(outcome, command, name, option):
    """What to mend where an option does not do what it should in a mode; empty when it does."""
    found, case = verdict(outcome, command, name, option), CASES[command]
    if (name, option) in case.stops and found != "stopped":
        return f"{option} is listed as stopping {name!r}, and is {found}: take it out."
    if (name, option) in case.no_effect:
        return "" if found == "silent" else f"{option} is listed as without effect in {name!r}, and is {found}."
    if found != "silent":
        return ""
    return (
        f"itembank {_words(command, name, option)}: the result is the same without {option}. Refuse it there "
        "(itembank.cli.options.refuse_unused), or list it in `no_effect` of the case with the reason."
    )


@pytest.mark.parametrize(
    "command", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW_COMMANDS)) for one in CASES]
)
def test_every_option_acts_in_some_mode(outcome, command):
    case, acts = CASES[command], {}
    for name in case.modes:
        for option in options_in(command, name):
            if verdict(outcome, command, name, option) in {"changed", "stopped"}:
                acts.setdefault(option, []).append(name)
    for option in case.nowhere:
        assert option not in acts, f"{option} is listed as acting nowhere, and acts in {acts[option]}: take it out."
    assert set(case.values) - set(case.never) - set(case.nowhere) <= set(acts)
