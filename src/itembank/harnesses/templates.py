"""Commands with places for an item: `python agent.py {item_id}`."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from itembank.errors import ParameterError, did_you_mean, shown

PLACE = re.compile(r"\{\{([A-Za-z_][\w.]*)\}\}|\{([A-Za-z_][\w.]*)\}")
"""`{name}`, which a value takes the place of, or `{{name}}`, which stands for itself in single braces."""
VARIABLE_PREFIX = "ITEMBANK_ITEM_"
SHELL = ("/bin/sh", "-c")


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """A command in which `{name}` stands for what is known of an item.

    Values are never part of a line that a shell reads. Without a shell each argument is filled in by itself. With one,
    `{name}` becomes a reference to an environment variable, since a shell does not read again what it got from there.
    """

    text: str
    columns: tuple[str, ...]  # Names that may stand in braces
    uses_shell: bool = False  # Whether a shell is to read the command, with its pipes, redirections and variables

    def __post_init__(self) -> None:
        """Check the command."""
        unknown = [name for name in _names(self.text) if name not in self.columns]
        if unknown:
            raise ParameterError(
                f"names in braces in the command must be columns of the item table, {shown(self.columns, limit=99)}, "
                f"got {shown(unknown)}.{did_you_mean(unknown, self.columns)} Double the braces of what is none: "
                f"{{{{{unknown[0]}}}}}."
            )
        if not self.words(dict.fromkeys(self.columns, "")):
            raise ParameterError("the command must name a program, got an empty text.")

    def words(self, values: Mapping[str, str]) -> list[str]:
        """Program and arguments for an item of which these values are known."""
        if self.uses_shell:
            return [*SHELL, _as_references(self.text)]
        return [_filled(word, values) for word in _split(self.text)]

    def environment(self, values: Mapping[str, str]) -> dict[str, str]:
        """Environment variables of an item: its id and place in the benchmark, and what the command names."""
        wanted = {"item_id", "scenario", "subscenario", *_names(self.text)}
        return {variable(name): values[name] for name in values if name in wanted}


def variable(column: str) -> str:
    """Name of the environment variable that holds a column: `ITEMBANK_ITEM_ID`, `ITEMBANK_ITEM_SCENARIO`."""
    return VARIABLE_PREFIX + re.sub(r"\W", "_", column.removeprefix("item_")).upper()


def _names(text: str) -> list[str]:
    return [found[2] for found in PLACE.finditer(text) if found[2]]


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ParameterError(f"the command must be one that falls into words: {error}, in {text!r}.") from error


def _filled(word: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda found: values[found[2]] if found[2] else f"{{{found[1]}}}", word)


def _as_references(text: str) -> str:
    """Put references to environment variables in place of names, as one word whatever they hold."""

    def reference(found: re.Match[str]) -> str:
        if not found[2]:
            return f"{{{found[1]}}}"
        quotes = _quotes_before(text[: found.start()])
        if quotes == "'":
            raise ParameterError(
                f"{found[0]} must not stand in single quotes in a command for a shell, which replaces nothing there. "
                "Leave the quotes out: the value stays one word."
            )
        return f"${{{variable(found[2])}}}" if quotes else f'"${{{variable(found[2])}}}"'

    return PLACE.sub(reference, text)


def _quotes_before(text: str) -> str:
    """Return the kind of quotes that are open at the end of a text, nothing where none are."""
    open_quotes, is_escaped = "", False
    for letter in text:
        if is_escaped:
            is_escaped = False
        elif letter == "\\" and open_quotes != "'":
            is_escaped = True
        elif letter == open_quotes:
            open_quotes = ""
        elif letter in "'\"" and not open_quotes:
            open_quotes = letter
    return open_quotes
