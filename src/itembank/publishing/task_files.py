"""What lies in the folder `tasks` of a published subset: task files and modules, and no data that nobody asked for."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from itembank.bank.bank_records import RECORD, read_record
from itembank.bank.banks import Bank
from itembank.bank.hub_pull import is_own_file
from itembank.errors import DataError, remedy, shown
from itembank.responses.secrets import holds_secret

BANK = "bank"
"""The folder among tasks that holds the bank once more, for the tasks to estimate with."""
CODE = (".yaml", ".yml", ".py")
DATA = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".csv",
    ".tsv",
    ".txt",
    ".parquet",
    ".arrow",
    ".gz",
    ".zst",
    ".bz2",
    ".xz",
    ".zip",
)
MADE = frozenset({"README.md", "selection.json"})
"""Files that `itembank export lm-eval-tasks` writes beside the tasks and the bank."""
FEWSHOT_SEED = 1234
"""By which the harness draws few-shot examples unless it is told otherwise."""
MOST_BYTES = 2**20
"""Of a task file or module; whatever is longer holds data."""


def check_task_files(folder: Path, bank: Bank, *, with_data: bool = False) -> list[Path]:
    """Return the files of a folder of tasks that may be published, relative to it.

    Raises
    ------
    DataError
        When it holds links, dot files, data (unless `with_data`), files of other kinds, secrets or home folders, or
        another bank.
    """
    files, refused = [], []
    for path in _everything(folder):
        reason = _refusal(path, path.relative_to(folder), with_data=with_data)
        if reason:
            refused.append(f"{path.relative_to(folder).as_posix()} ({reason})")
        elif not path.is_dir():
            files.append(path.relative_to(folder))
    if refused:
        raise DataError(
            f"{folder} must hold task files (.yaml), modules (.py) and what itembank writes, got {shown(refused, 20)}. "
            "Take them out, or publish the folder again"
            + (
                "."
                if with_data
                else f"; data may go where you say so ({remedy('include_data=True', '--include-data')})."
            )
        )
    if (folder / BANK / RECORD).is_file() and read_record(folder / BANK)["bank_id"] != bank.bank_id:
        raise DataError(f"{folder / BANK} must be the bank that is published, got another. Publish the folder again.")
    return files


def _everything(folder: Path) -> Iterator[Path]:
    """Files, links and dot folders, in order; links are not followed, and what Python compiled is passed over."""
    for place, folders, names in os.walk(folder, followlinks=False):
        special = [name for name in folders if name.startswith(".") or (Path(place) / name).is_symlink()]
        folders[:] = sorted(set(folders) - {*special, "__pycache__"})
        yield from (Path(place) / name for name in sorted([*names, *special]))


def _refusal(path: Path, name: Path, *, with_data: bool) -> str:
    """Say why a file may not be published; nothing where it may."""
    if path.is_symlink():
        return "a link"
    if name.name.startswith(".") or not path.is_file():
        return "a dot file" if name.name.startswith(".") else "no ordinary file"
    if name.as_posix() in MADE or _is_of_bank(name):
        return ""
    if is_data(name):
        return "" if with_data else "data"
    is_code = name.suffix.lower() in CODE or (not name.suffix and name.name.endswith("yaml"))
    return _refusal_of_code(path) if is_code else "neither a task file nor a module"


def is_data(name: Path) -> bool:
    """Whether a file among tasks, relative to their folder, holds data of theirs."""
    return name.suffix.lower() in DATA and name.as_posix() not in MADE and not _is_of_bank(name)


def _refusal_of_code(path: Path) -> str:
    """Say why a task file or a module may not be published."""
    if path.stat().st_size > MOST_BYTES:
        return f"longer than {MOST_BYTES:,} bytes"
    text = path.read_bytes().decode("utf-8", errors="replace")
    return "with a secret or a home folder in it" if holds_secret(text) else ""


def _is_of_bank(name: Path) -> bool:
    """Whether a file is one of those that a bank in the folder is made of."""
    return name.parts[:1] == (BANK,) and is_own_file("/".join(name.parts[1:]))


def file_sizes(folder: Path) -> dict[str, int]:
    """Bytes of every file below a folder, by its path in order."""
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    return dict(sorted(files.items()))


def harness_arguments(settings: Mapping[str, Mapping[str, Any]], tasks: Iterable[str]) -> str:
    """Return what the command of lm-evaluation-harness needs for prompts of these tasks that no task file can set."""
    found = [settings.get(task, {}) for task in tasks]
    has_template = bool(found) and all(one.get("chat_template") is True for one in found)
    turns = {one["fewshot_as_multiturn"] for one in found if isinstance(one.get("fewshot_as_multiturn"), bool)}
    seeds = {one["fewshot_seed"] for one in found if type(one.get("fewshot_seed")) is int} - {FEWSHOT_SEED}
    words = [
        *(["--apply_chat_template"] if has_template else []),
        *([f"--fewshot_as_multiturn {str(turns.pop()).lower()}"] if has_template and len(turns) == 1 else []),
        *([f"--seed 0,1234,1234,{seeds.pop()}"] if len(seeds) == 1 else []),
    ]
    return "".join(f" {word}" for word in words)
