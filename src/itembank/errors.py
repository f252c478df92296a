"""Every exception and warning of the package, under one root."""

import functools
import inspect
import os
import re
import shlex
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

N_SHOWN = 5
MOST_SHOWN = 100
"""Characters of an id or value that a message shows."""

_is_command_line: ContextVar[bool] = ContextVar("is_command_line", default=False)
_unsaid: ContextVar[tuple[Any, ...]] = ContextVar("unsaid", default=())

_NUMBERS = re.compile(r"\d[\d.,]*(e[+-]?\d+)?")
_EXAMPLES = re.compile(r": ['\"].*", re.DOTALL)
_COUNT = re.compile(r"\d+(?= rows | responses )")


class ItembankError(Exception):
    """Root of every error that itembank raises on purpose."""


class DataError(ItembankError, ValueError):
    """Responses, tables or files that do not say what they must."""


class ParameterError(ItembankError, ValueError):
    """An option or argument outside what it may be."""


class BankError(ItembankError):
    """A bank folder that is absent, damaged, of another schema, or that does not match the data."""


class IntegrityError(BankError):
    """Files of a bank that are missing or are not the ones that were written; a damaged journal."""


class JournalError(ItembankError):
    """A session's journal that another process has open, or that cannot be written."""


class RunError(ItembankError):
    """Items that could not be run, one after the other, so that going on would only cost."""


class MissingDependencyError(ItembankError, ImportError):
    """An optional dependency is not installed, or cannot be imported; the message says what to install."""


def missing_package(need: str, packages: str, error: ImportError) -> MissingDependencyError:
    """Return the error that says what to install for what is needed: 'charts need vl-convert-python'.

    `need` says what needs which package, and `packages` what `pip install` is to be given. The error may name another
    module: one that an installed package imports in its turn.
    """
    absent = (error.name or "").partition(".")[0]
    is_own = absent in packages.lower().replace("-", "_")  # the module of PyYAML is yaml
    if isinstance(error, ModuleNotFoundError) and not is_own:
        reason = f"which is installed but imports another package that is not ({error}): pip install {absent}"
    elif absent and not isinstance(error, ModuleNotFoundError):
        reason = f"which is installed but cannot be imported ({error}): pip install --upgrade {packages}"
    else:
        reason = f"which is not installed ({error}): pip install {packages}"
    return MissingDependencyError(f"{need}, {reason}")


class ItembankWarning(UserWarning):
    """Root of every warning that itembank gives."""


class ConvergenceWarning(ItembankWarning):
    """An iterative fit stopped before it met its tolerance."""


class DataWarning(ItembankWarning):
    """Data that can be used but is probably not what was meant."""


class ModelWarning(DataWarning):
    """A `DataWarning` about some models of several, which the notes of these models say, too."""


def shown(names: Sequence[object], limit: int = N_SHOWN) -> str:
    """List the first few names for a message, quoted, with how many more there are."""
    text = ", ".join(map(quoted, names[:limit]))
    more = len(names) - limit
    return f"{text} and {more} more" if more > 0 else text


def quoted(name: object) -> str:
    """Quote an id or value that came from outside, without its middle if a message cannot bear it: ends tell apart."""
    text, half = str(name), MOST_SHOWN // 2
    return repr(text) if len(text) <= MOST_SHOWN else f"{text[:half]!r}...{text[-half:]!r} ({len(text):,} characters)"


def visible(text: str) -> str:
    """Replace control characters, which could drive the terminal, by their escapes."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def shell_word(name: object) -> str:
    """Write a path, or a name of a stranger, as one word of a shell that means just this, for commands to be copied.

    A path that begins with a dash is no option. Letters that cannot be seen are in the form $'...' of bash and zsh.
    """
    text = f"./{name}" if isinstance(name, PurePath) and str(name).startswith("-") else str(name)
    if text.isprintable():
        return shlex.quote(text)
    seen = (one if one.isprintable() and one not in "'\\" else _escaped_bytes(one) for one in text)
    return f"$'{''.join(seen)}'"


def _escaped_bytes(letter: str) -> str:
    is_byte = "\udc80" <= letter <= "\udcff"  # of a file's name that is no UTF-8
    data = os.fsencode(letter) if is_byte else letter.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def did_you_mean(wrong: str | Sequence[object], known: Iterable[object]) -> str:
    """Name what was probably meant by unknown names, as a sentence to add to a message; nothing if none is near.

    Case does not matter, nor that a part was left out (``usd`` for ``cost_usd``). Digits do: ``q/18`` is not a slip
    of ``q/17``.
    """
    names = [wrong] if isinstance(wrong, str) else [str(one) for one in wrong[:N_SHOWN]]
    by_digits: dict[str, dict[str, str]] = {}
    for one in map(str, known):
        by_digits.setdefault(_digits(one), {}).setdefault(one.casefold(), one)
    meant = {name: near for name in names if (near := _near(name.casefold(), by_digits.get(_digits(name), {})))}
    if not meant:
        return ""
    if len(names) == 1:
        return f" Did you mean {next(iter(meant.values()))!r}?"
    return " Did you mean " + ", ".join(f"{near!r} for {name!r}" for name, near in meant.items()) + "?"


def _digits(name: str) -> str:
    return "".join(letter for letter in name if letter.isdigit())


def _near(name: str, known: dict[str, str]) -> str | None:
    """Return the known name that is most like another, by its spelling in lower case; None when none is."""
    if name in known:
        return known[name]
    close = get_close_matches(name, known, n=1, cutoff=0.7)
    if not close and len(name) >= 3:  # a shorter part is in many
        close = sorted((one for one in known if name in one), key=len)
    return known[close[0]] if close else None


@contextmanager
def command_line_words(*, are_used: bool = True) -> Iterator[None]:
    """Make messages name options of the command line instead of arguments in Python."""
    token = _is_command_line.set(are_used)
    try:
        yield
    finally:
        _is_command_line.reset(token)


def speaks_command_line() -> bool:
    """Whether messages name options of the command line, to be said again in another process."""
    return _is_command_line.get()


def remedy(python: str, command_line: str) -> str:
    """Return what to do in the words of whoever asked: Python's, or inside `command_line_words` the command line's."""
    return command_line if _is_command_line.get() else python


OF_LEVEL = {**dict.fromkeys(("confidence", "ci"), "level"), "alpha": "level=1 - alpha"}
"""What is meant by other names of the confidence level."""


def says_instead(**meant: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Make a function say which argument is meant by names that people try first, or without one.

    ``says_instead(n="n_items")`` is for who writes ``n``.
    """

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        code = function.__code__
        names, n_places = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], code.co_argcount

        @functools.wraps(function)
        def call(*arguments: Given.args, **named: Given.kwargs) -> Result:
            for wrong in meant.keys() & named.keys():
                value = "=..." if meant[wrong].isidentifier() else "."
                raise TypeError(f"{function.__name__}() has no argument {wrong!r}. Write {meant[wrong]}{value}")
            if len(arguments) > n_places and not code.co_flags & inspect.CO_VARARGS:
                others = ", ".join(f"{name}=..." for name in names[n_places : n_places + 4])
                files = " Write several files as a list: [a, b]." if names[0] == "results" else ""
                raise TypeError(
                    f"{function.__name__}({', '.join(names[:n_places])}, ...) takes other arguments by name, such as "
                    f"{others}, got {len(arguments)} without names.{files}"
                )
            return function(*arguments, **named)

        return call

    return decorate


def warn(message: str, category: type[ItembankWarning]) -> None:
    """Give a warning that points at the line outside this package that led to it, unless it is `unsaid`."""
    for kind, beginning, kept in reversed(_unsaid.get()):
        if issubclass(category, kind) and message.startswith(beginning):
            kept.append((message, category))
            return
    frame, level = inspect.currentframe(), 1
    # wings are named as the core is, and contextlib stands between a decorated function and its caller
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("itembank", "contextlib")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def unsaid(kind: type[ItembankWarning], beginning: str = "") -> Iterator[list[tuple[str, type[ItembankWarning]]]]:
    """Keep the package's warnings of a kind in a list; `warnings.catch_warnings` would lose those of other threads."""
    kept: list[tuple[str, type[ItembankWarning]]] = []
    token = _unsaid.set((*_unsaid.get(), (kind, beginning, kept)))
    try:
        yield kept
    finally:
        _unsaid.reset(token)


@contextmanager
def warned_once(files: Iterable[object] = ()) -> Iterator[list[str]]:
    """Give each of the package's warnings once when the work is over, and list the texts but those of `ModelWarning`.

    Warnings that differ in their numbers only are the same; the first of them is given, with how many there were. Those
    that begin with one of `files` may differ in the file and in examples after a colon, too; a number of rows is that
    of all files then.
    """
    known = set(map(str, files))
    caught: list[tuple[str, type[ItembankWarning]]] = []
    told: list[str] = []
    try:
        with unsaid(ItembankWarning) as caught:
            yield told
    finally:  # they may explain an error that ends the work
        kinds: dict[tuple[type, str], list[str]] = {}
        for text, category in caught:
            file, _, rest = text.partition(": ")
            kind = _EXAMPLES.sub("", rest) if file in known else text
            kinds.setdefault((category, _NUMBERS.sub("0", kind)), []).append(text)
        for (category, _), texts in kinds.items():
            whole = texts[0] if len(texts) == 1 else _together(texts, known)
            told += [] if issubclass(category, ModelWarning) else [whole]
            warn(whole, category)


def _together(texts: Sequence[str], files: Collection[str]) -> str:
    """Give several warnings of one kind as one."""
    parts = [text.partition(": ") for text in texts]
    where, rest = parts[0][0], parts[0][2]
    n_files = len({file for file, _, _ in parts})
    if where not in files or n_files == 1:
        return f"{texts[0]} (And {len(texts) - 1} more like it.)"
    counts = [_COUNT.match(one) for _, _, one in parts]
    n = sum(int(one[0]) for one in counts if one is not None)
    rest = _COUNT.sub(str(n), rest) if all(counts) else rest
    return f"{where} and {n_files - 1} more file{'s' * (n_files > 2)}: {rest}"


def first_few(parts: Sequence[str], total: int | None = None) -> str:
    """Join the first few parts, and say how many more there are (`total` counts all when `parts` is cut already)."""
    more = (len(parts) if total is None else total) - N_SHOWN
    return ", ".join(parts[:N_SHOWN]) + (f" and {more} more" if more > 0 else "")
