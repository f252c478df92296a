"""Programs whose results are read: how their files are told, and what reads them. Packages add theirs by entry points.

A module is imported when it is needed, so that the tables, and with them the help of commands, load no reader.
"""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath
from typing import Any

from itembank.methods import entry_points_of


@dataclass(frozen=True, slots=True)
class Source:
    """One program whose results are read, by a module X.

    ``is_X(record)`` says whether an object of a JSON file is one of its results. ``X_answers(file, spec)`` gives the
    answers of one file as records of a long table (`rows_of_records`), or ``X_rows(paths, spec, *, progress)`` reads
    files and, where `files` names some, folders, of which it takes whatever is its own. Where logs hold what was asked,
    ``X_documents(paths, spec, known)`` may give it as `matching.Document` (`matching.logged_documents`).
    """

    title: str  # What its results are called in messages
    module: str = ""  # X, where it is not the program's name; it is in the package of the table
    # Files below a folder that hold its results, told by the end of their path ('reviews/*/*.jsonl'); never CSV, which
    # is taken for a table before anybody is asked.
    files: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # Files below a folder that its reader takes too, if their content told them
    beside: tuple[str, ...] = ()  # Files that it writes beside these, which hold no results of their own
    hint: str = ""  # Where these files are, or come from, for a folder without any
    # Fields of `ReadingSpec` beyond those of all results that have a say in how its results are read.
    takes: tuple[str, ...] = ()
    is_told_by_name: bool = True  # Whether such a name below a folder is enough; else the content is looked at
    sure: tuple[str, ...] = ()  # Those files whose names are enough where other names are not
    is_told_by_beside: bool = True  # Whether names of files beside its results are enough; else one must be read
    # Whether its results name every item; else ``X_rows`` also takes `item_ids`, those of the caller's table of items.
    lists_all_items: bool = True

    def holds(self, path: PurePath) -> bool:
        """Whether the name of a file says that it holds results of this program."""
        return matches(path, self.files)


TABLES = ("auto", "responses", "long", "wide-models", "wide-items")
"""Formats that are no program's: what `ReadingSpec.format` may be beside the names of sources."""


@cache
def sources() -> Mapping[str, Source]:
    """Return all sources by the name that `ReadingSpec.format` has for them; the first whose test holds counts.

    Installed packages bring tables of them, and are asked only where a file may be no table: that takes a while.
    """
    return {
        name: replace(one, module=f"{entry.module.rpartition('.')[0]}.{one.module or name.replace('-', '_')}")
        for entry in entry_points_of("itembank.readers").values()
        for name, one in entry.load().items()
    }


def no_readers() -> str:
    """Say that no package is installed which adds sources; nothing where one is."""
    if entry_points_of("itembank.readers"):
        return ""
    return " No package is installed that reads logs of harnesses and leaderboards (entry points 'itembank.readers')."


def source_called(name: str) -> Source | None:
    """Return the source of a format; None of a table's."""
    return None if name in TABLES else sources().get(name)


def matches(path: PurePath, patterns: Iterable[str]) -> bool:
    """Whether the end of a path matches one of these patterns."""
    return any(path.match(pattern) for pattern in patterns)


def reader_function(name: str, form: str) -> Any:
    """Return the function of a source's module that is called so ('is_{}'); None where it has none."""
    module = sources()[name].module
    return getattr(importlib.import_module(module), form.format(module.rpartition(".")[2]), None)


def source_of_record(record: Mapping[str, Any]) -> str | None:
    """Return the name of the source that an object of a JSON file is a result of; None where there is none."""
    tests = ((name, reader_function(name, "is_{}")) for name in sources())
    return next((name for name, is_own in tests if is_own is not None and is_own(record)), None)


def source_of_name(path: PurePath) -> str | None:
    """Return the name of the source that the name of a file tells; None where it tells none."""
    told = ((name, one.files if one.is_told_by_name else one.sure) for name, one in sources().items())
    return next((name for name, patterns in told if matches(path, patterns)), None)


def is_companion(path: PurePath) -> bool:
    """Whether some program writes such a file beside its results."""
    return any(matches(path, source.beside) for source in sources().values())
