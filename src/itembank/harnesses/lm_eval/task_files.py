"""Which files of a folder of tasks some tasks need: their YAML files, what these include, and their modules.

Nothing here runs what it reads: YAML is read as data, and of modules only their imports are looked at.
"""

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from itembank.errors import DataError, missing_package, quoted

OF_GROUPS: Final = {*("group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag", "include", "class")}
"""Keys of a group that say what it is; others change its tasks."""
Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Files of a folder that chosen tasks need."""

    files: tuple[Path, ...]  # YAML files and modules, relative to the folder
    data: tuple[Path, ...]  # Data files that `dataset_kwargs` of these tasks name, relative to the folder
    # What the YAML files call these data files, and what they are called relative to the folder.
    renamed: Mapping[str, str]
    # What groups of the folder change of a task, which is exported as it stands by itself.
    changes: Mapping[str, Mapping[str, tuple[str, ...]]]
    n_others: int  # Files of the folder that no chosen task needs


class _Function(str):
    """What stands behind `!function`: MODULE.NAME."""

    __slots__ = ()


def copy_files(folder: Path, needed: TaskFiles, target: Path, *, with_data: bool) -> None:
    """Copy what is needed; with data, the YAML files name it relative to the copied folder."""
    for path in (*needed.files, *(needed.data if with_data else ())):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        content = (folder / path).read_bytes()
        if with_data and path.suffix != ".py" and path not in needed.data:
            for old, new in needed.renamed.items():
                name = rb"(?<![\w./-])" + re.escape(old.encode()) + rb"(?![\w/-])"
                content = re.sub(name, lambda _, new=new: new.encode(), content)  # type: ignore[misc]
        (target / path).write_bytes(content)


def needed_files(folder: Path, tasks: Sequence[str]) -> TaskFiles:
    """Find what these tasks need of a folder, where they are in it; no links are followed, and no dot files are read.

    Raises
    ------
    DataError
        When a task file needs another file that is a link, a dot file or outside of the folder, or that is not there.
    MissingDependencyError
        When PyYAML is not installed.
    """
    folder = folder.resolve()
    regular = set(_regular_files(folder))
    configs = {path: config for path in sorted(regular) if path.suffix == ".yaml" if (config := _yaml(path))}
    of_tasks: dict[str, Path] = {}
    for path, config in configs.items():
        name = _merged(path, config).get("task")
        if isinstance(name, str):
            of_tasks.setdefault(name, path)
    files: dict[Path, None] = {}
    data: dict[str, Path] = {}
    for task in tasks:
        if task in of_tasks:
            for path in _needed(of_tasks[task], folder, regular):
                files.setdefault(path)
            given = _merged(of_tasks[task], configs[of_tasks[task]]).get("dataset_kwargs")
            named = {text: _data_file(text, folder, regular) for text in _texts(given)}
            data |= {text: path for text, path in named.items() if path is not None}
    groups = {config["group"]: config for config in configs.values() if isinstance(config.get("group"), str)}
    return TaskFiles(
        tuple(path.relative_to(folder) for path in sorted(files)),
        tuple(path.relative_to(folder) for path in sorted(set(data.values()))),
        {text: path.relative_to(folder).as_posix() for text, path in data.items()},
        {task: found for task in tasks if (found := _changes(task, groups))},
        len(regular - set(files) - set(data.values())),
    )


def _regular_files(folder: Path) -> Iterator[Path]:
    """Files of a folder, none of them a link, a dot file or below one."""
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        for name in names:
            path = Path(place) / name
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _yaml(path: Path) -> Config:
    """Content of a task file as data; nothing where it is none, which the harness leaves out, too."""
    try:
        import yaml  # noqa: PLC0415
    except ImportError as error:
        raise missing_package("task files need PyYAML", "PyYAML", error) from error

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Reads `!function` as text."""

    Loader.add_constructor("!function", lambda loader, node: _Function(loader.construct_scalar(node)))
    try:
        content = Loader(path.read_bytes()).get_single_data()
    except (yaml.YAMLError, OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _includes(config: Config) -> list[str]:
    given = config.get("include")
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]


def _merged(path: Path, config: Config, seen: tuple[Path, ...] = ()) -> Config:
    """Return a configuration with what it includes, whose keys it overrides."""
    merged: Config = {}
    for one in _includes(config):
        included = path.parent / one
        if included not in seen and included.is_file():
            merged |= _merged(included, _yaml(included), (*seen, path, included))
    return merged | config


def _needed(path: Path, folder: Path, regular: set[Path]) -> set[Path]:
    """Return a task file, what it includes, and the modules beside it that its functions and their imports are of."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.add(one)
        if one.suffix == ".py":
            waiting += [module for module in _imported(one) if module in regular]
            continue
        config = _yaml(one)
        for name in _includes(config):
            waiting.append(_inside(one.parent / name, one, folder, regular))
        for function in _functions(config):
            module = one.parent / f"{function.rpartition('.')[0].replace('.', '/')}.py"
            if os.path.lexists(module):  # others are of packages that are installed
                waiting.append(_inside(module, one, folder, regular))
    return found


def _inside(path: Path, needed_by: Path, folder: Path, regular: set[Path]) -> Path:
    """Return a file that another needs, where it may go."""
    plain = Path(os.path.normpath(path))
    if plain not in regular:
        raise DataError(
            f"{needed_by} needs {quoted(path)}: what tasks need must be files of {folder}, no links and no dot files. "
            "Give the folder that holds all of it (--include-path), with the file itself in it."
        )
    return plain


def _functions(value: Any) -> Iterator[str]:
    """Functions that a configuration names, wherever they stand."""
    if isinstance(value, _Function):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _functions(one)
    elif isinstance(value, list):
        for one in value:
            yield from _functions(one)


def _imported(module: Path) -> Iterator[Path]:
    """Where the modules would lie that a module imports from the folders beside and above it."""
    try:
        tree = ast.parse(module.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [(node.level, base), *((node.level, f"{base}.{alias.name}".strip(".")) for alias in node.names)]
        else:
            continue
        for level, name in names:
            place = module.parents[max(level - 1, 0)] if level <= len(module.parents) else module.parent
            parts = name.split(".") if name else []
            yield from (place.joinpath(*parts[:n], "__init__.py") for n in range(min(1, len(parts)), len(parts) + 1))
            yield place.joinpath(*parts[:-1], f"{parts[-1]}.py") if parts else place / "__init__.py"


def _texts(value: Any) -> Iterator[str]:
    """Texts of a value that may hold others."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _data_file(text: str, folder: Path, regular: set[Path]) -> Path | None:
    """Return the file of the folder that a text names, from where the harness is started or from the folder."""
    paths = (Path(os.path.normpath(place / text)) for place in (Path.cwd(), folder))
    return next((path for path in paths if path in regular), None)


def _changes(task: str, groups: Mapping[str, Config]) -> dict[str, tuple[str, ...]]:
    """Name what each group changes of a task."""
    found: dict[str, tuple[str, ...]] = {}
    for name, config in groups.items():
        keys = {key for one in _overrides(task, config, groups, frozenset(), (name,)) for key in one}
        if keys:
            found[name] = tuple(sorted(keys))
    return found


def _overrides(
    task: str, config: Config, groups: Mapping[str, Config], given: frozenset[str], seen: tuple[str, ...]
) -> Iterator[frozenset[str]]:
    """Keys that a group, or one inside of it, changes of a task."""
    given |= frozenset(map(str, config)) - OF_GROUPS
    children = config.get("task")
    for child in children if isinstance(children, list) else []:
        about = child if isinstance(child, dict) else {"task": child}
        name = about.get("group", about.get("task"))
        keys = given | (frozenset(map(str, about)) - OF_GROUPS)
        if name == task:
            yield keys
        elif isinstance(about.get("task"), list):
            yield from _overrides(task, about, groups, keys, seen)
        elif isinstance(name, str) and name in groups and name not in seen:
            yield from _overrides(task, groups[name], groups, keys, (*seen, name))
