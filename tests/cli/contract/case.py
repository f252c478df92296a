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


@dataclass(frozen=True)
class Case:
    """A command: its modes, a value for each option, and what has no effect, or stops the command, and why.

    Attributes
    ----------
    modes : dict of str to Mode
    values : dict
        What is added to the base call to alter one option, by the option's longest name.
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
    values: dict
    no_effect: dict = field(default_factory=dict)
    never: dict = field(default_factory=dict)
    nowhere: dict = field(default_factory=dict)
    stops: dict = field(default_factory=dict)


def options(text):
    """A value for each of several options, written as on one command line, by the options' names."""
    return {one.partition(" ")[0]: one for one in re.split(r" (?=--)", text)}
