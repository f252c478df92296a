"""Options of the commands that publish, and how they say what goes and what stays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from itembank.cli.options import option
from itembank.cli.render import note
from itembank.errors import visible

Function = TypeVar("Function", bound=Callable[..., Any])

license_option = option("--license NAME license_name", "License, as the Hub has it: cc-by-4.0.", default="")
_include = option(
    "--include-column NAME include_columns",
    "A column of items that may be published although it looks like questions or answers, or one of models beside"
    " those that are known to be needed. Repeatable.",
    many=True,
)
_drop = option("--drop-column NAME drop_columns", "A column of items or models to leave out. Repeatable.", many=True)
include_data_option = option("--include-data", "Let the data files of tasks go: questions and answers, mostly.", bool)
MOST_LISTED = 40


def column_options(function: Function) -> Function:
    """Add `--include-column` and `--drop-column`."""
    return _include(_drop(function))


def note_files(files: Mapping[str, int]) -> None:
    """List the files that go, with their sizes."""
    note(f"What goes: {len(files)} files, {sum(files.values()):,} bytes.")
    for name, size in list(files.items())[:MOST_LISTED]:
        note(f"  {size:>12,}  {visible(name)}")
    if len(files) > MOST_LISTED:
        note(f"  and {len(files) - MOST_LISTED} more")


def note_columns(went: Sequence[str], left_out: Sequence[str]) -> None:
    """List the columns of models that go and those of any table that stay."""
    if went:
        note(f"Columns of models that go: {visible(', '.join(went))}.")
    if left_out:
        note(f"Columns that stay: {visible(', '.join(left_out))}.")


def note_tasks(notes: Sequence[str]) -> None:
    """Say what exported tasks cannot do by themselves."""
    for one in notes:
        note(f"Note: {visible(one)}")
