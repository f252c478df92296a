"""What the contract test needs to know of a command."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mode:
    """A way to call a command whose options may differ from those of other ways: one cheap base call.

    Attributes
    ----------
    words : str
        What follows the command.
    about : tuple of str
        The options tried in this mode; empty: every one.
    values : dict
        Options whose value differs from that of the command's other modes.
    brings : tuple of str
        Files and folders that stand in the output folder before the call.
    then : tuple of (words, standard input)
        Later calls whose standard output belongs to the result.
    unseen : tuple of str
        Names of files that repeat what was asked for; only that they exist counts.
    codes : tuple of int
        Exit codes that the base call may have.
    hears : bool
        What is said on standard error belongs to the result.
    """

    words: str
    about: tuple = ()
    values: dict = field(default_factory=dict)
    brings: tuple = ()
    stdin: str = ""
    then: tuple = ()
    unseen: tuple = ()
    codes: tuple = (0,)
    hears: bool = False


def mode(words, about="", values="", brings="", unseen="", **more):
    return Mode(
        words, tuple(about.split()), options(values), tuple(brings.split()), unseen=tuple(unseen.split()), **more
    )


@dataclass(frozen=True)
class Case:
    """A command: its modes, a value for each option, and what has no effect, or stops the command, and why.

    Attributes
    ----------
    modes : dict of str to Mode
    values : str
        What is added to the base call to alter one option, for every option, as on one command line.
    no_effect : dict of (mode, option) to reason
        The option changes nothing in this mode and is not refused, and why that is right.
    never : dict of option to reason
        The option is not there to change a result; another test sees it at work.
    nowhere : dict of option to reason
        The option is refused in every mode here, or changes nothing that these few data could show.
    stops : dict of (mode, option) to words of the message
        The option makes the command fail in this mode, as it should, with a message that does not name it.
    """

    modes: dict
    values: str
    no_effect: dict = field(default_factory=dict)
    never: dict = field(default_factory=dict)
    nowhere: dict = field(default_factory=dict)
    stops: dict = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "values", options(self.values))


def options(text):
    """A value for each of several options, written as on one command line, by the options' names."""
    found = {}
    for one in re.split(r" (?=--)", text) if text else ():
        name = one.partition(" ")[0]
        found[name] = f"{found[name]} {one}" if name in found else one
    return found


def each(options, reason, *modes):
    """Give a reason for each of the options, in each of the modes if some are named."""
    names = options.split()
    return {(mode, name): reason for mode in modes for name in names} if modes else dict.fromkeys(names, reason)


# options of reading responses, and others that many commands share

JQ = {"--jq": "tests/cli/test_import_jq.py has JSON of other shapes"}
MIXED = {"--allow-mixed-prompts": "tests/readers/test_contents.py has logs of other prompts", **JQ}
MATCHED = {"--match": "tests/harnesses find items in logs of tasks that the bank does not know"}
PAGES = {"--report": "tests/cli writes the page of every command that has one"}
ONCE = {
    "--estimand": "a score over repeated runs is refused, which names the option: no model attempted items repeatedly"
}
COMMON = "--seed 7 --format json"


def none_lost(*modes):
    return each("--errors", "no answer was lost", *modes)


def no_chance(*modes):
    return each("--seed", "nothing is left to chance", *modes)
