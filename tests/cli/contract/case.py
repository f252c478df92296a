"""What the contract test needs to know of a command."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mode:
    """A way to call a command whose options may differ from those of other ways: one cheap base call."""

    words: str  # What follows the command
    about: tuple = ()  # The options tried in this mode; empty: every one
    values: dict = field(default_factory=dict)  # Options whose value differs from that of the command's other modes
    brings: tuple = ()  # Files and folders that stand in the output folder before the call
    stdin: str = ""
    then: tuple = ()  # Later calls, words and standard input, whose standard output belongs to the result
    unseen: tuple = ()  # Names of files that repeat what was asked for; only that they exist counts
    codes: tuple = (0,)  # Exit codes that the base call may have
    hears: bool = False  # What is said on standard error belongs to the result


def mode(words, about="", values="", brings="", unseen="", **more):
    return Mode(
        words, tuple(about.split()), options(values), tuple(brings.split()), unseen=tuple(unseen.split()), **more
    )


@dataclass(frozen=True)
class Case:
    """A command: its modes, a value for each option, and what has no effect, or stops the command, and why.

    Keys of reasons are options, or a mode and an option.
    """

    modes: dict
    values: str  # What is added to the base call to alter one option, for every option, as on one command line
    no_effect: dict = field(default_factory=dict)  # The option changes nothing in this mode and is not refused
    never: dict = field(default_factory=dict)  # It is not there to change a result; another test sees it at work
    nowhere: dict = field(default_factory=dict)  # It is refused in every mode, or nothing that these data could show
    stops: dict = field(default_factory=dict)  # It makes the command fail, as it should: words of the message

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
MIXED = {"--allow-mixed-prompts": "tests/readers/test_agreement.py has logs of other prompts", **JQ}
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
