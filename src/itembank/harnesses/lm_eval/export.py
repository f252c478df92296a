"""Writing a folder of tasks that the harness's stock command runs, with the files that the original tasks need.

Nothing here runs what it reads: YAML is read as data, and of modules only their imports are looked at.
"""

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from itembank.bank.bank_files import save_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError, missing_package, quoted, shown
from itembank.files.atomic import check_destination, replacing_folder
from itembank.harnesses.lm_eval.documents import chosen_documents
from itembank.harnesses.lm_eval.exported import BANK, SELECTION, TASKS
from itembank.progress import ProgressCallback, silent
from itembank.publishing.cards import escaped, table
from itembank.publishing.publishable import (
    file_sizes,
    harness_arguments,
    left_out_of_models,
    question_columns,
    without_columns,
)
from itembank.readers.lm_eval_choice import METRIC_OF_RESPONSE
from itembank.readers.lm_eval_files import OF_BANK, ORIGINAL
from itembank.responses.prompts import DIFFERS, IN_WORDS, names_in_harness, settings_by_task, settings_in_words
from itembank.sessions.preparation import prepare

MODULE = "itembank_task"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
CODE = '''"""Chosen documents of other tasks, with the estimate among their metrics. Needs itembank[lm-eval]."""

from pathlib import Path

from itembank.harnesses.lm_eval.exported import exported_task

FOLDER = Path(__file__).resolve().parent


class Selected:
    """What lm_eval calls to make a task; it gets the original, narrowed to the chosen documents."""

    def __new__(cls, config=None):
        return exported_task(config, FOLDER)

    def __init__(self, config=None):
        """Say that there is a configuration to be given: lm_eval looks for this."""
'''
README = """\
# {name}: {n_items} of {n_total} items, by {method}

Tasks for lm-evaluation-harness that run chosen documents of {tasks}, and estimate what a run of all of them would give.

```sh
pip install 'itembank[lm-eval]'
lm_eval --model hf --model_args pretrained=... --include_path {folder} --tasks {name}{arguments} \\
  --log_samples --output_path out
```

All contexts are built and the chosen documents are kept, so that prompts are those of a full run also where few-shot
examples are random. The tasks set the number of shots that the bank's runs had. Chat templates, seeds and system
prompts are arguments of the command: the table shows what the bank's runs had. Before the first request prompts are
compared with the bank's, where it knows them, and a warning says which differ.

{rows}
{notes}
`est_full` is the estimated score of the whole task, `est_low` and `est_high` are the ends of its 95 % interval. The
other metrics are means over the chosen documents, which are no estimate of anything. A task's `est_full` rests on its
own documents alone; the overall score, and better scores of tasks, come from all documents together:

```sh
itembank estimate {folder}/bank out --selection {folder}/selection.json
```

The folder holds bank `{bank}` {responses}, the selection, and {originals}.
"""
UNCHANGED = {"task_alias", "alias"}
"""What a group may change of a task that changes no prompt and no score."""
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


@dataclass(frozen=True, slots=True)
class ExportedTasks:
    """What was written."""

    tasks: tuple[str, ...]
    files: Mapping[str, int]  # Bytes of each file
    left_out: tuple[str, ...]  # Columns of the bank's tables that stayed
    notes: tuple[str, ...]  # What the tasks cannot do by themselves: sentences for whoever runs them


def export_tasks(
    # It goes into the folder with its responses, where it has any; intervals of a task's own score need them. Columns
    # of items that look like questions, and those of models that nothing needs, are left out
    bank: Bank,
    selection: Selection,
    path: str | Path,  # A folder that is new or empty
    *,
    name: str = "tiny",  # Of the group of tasks; a task is called ``NAME_ORIGINAL``
    # Tasks of your own that the harness does not bring, as its `--include_path`. Copied are the YAML files and modules
    # that the chosen tasks name: no other tasks, no links, no dot files, nothing outside of the folder
    include_path: str | Path | None = None,
    include_data: bool = False,  # Copy the data files, too, that the `dataset_kwargs` of these tasks name
    progress: ProgressCallback = silent,
) -> ExportedTasks:
    """Write a folder that ``lm_eval --include_path PATH --tasks NAME`` runs."""
    path = Path(path)
    documents = chosen_documents(selection)
    if not NAME.fullmatch(name):
        raise ParameterError(f"name must be letters, digits, - and _, got {name!r}.")
    check_destination(path, is_folder=True)
    if path.is_dir() and any(path.iterdir()):
        raise ParameterError(f"{path} must be new or empty. Take another folder, or remove what is in it.")
    items = bank.responses.items
    made = set(METRIC_OF_RESPONSE.values())
    chosen = items.filter(items["task"].is_in(list(documents))) if "task" in items.columns else items.head(0)
    unlogged = sorted(set(chosen["task"].filter(chosen["metric"].is_in(made)))) if chosen.height else []
    if not chosen.height or unlogged:
        what = f"those of {shown(unlogged)} are made of log-likelihoods" if unlogged else "the bank names no metric"
        raise ParameterError(
            f"responses must be a metric that lm_eval logs, for an exported task to estimate from it, and {what}. Run "
            "the items with itembank run lm-eval."
        )
    needed = None
    if include_path is not None:
        own = names_in_harness(bank.responses.items)  # the harness may call tasks otherwise than the bank
        names = {own.get(task, task): task for task in documents}
        needed = needed_files(Path(include_path), list(names))
        needed = replace(needed, changes={names[task]: groups for task, groups in needed.changes.items()})
    left_out = (*question_columns(bank), *left_out_of_models(bank))
    bank = without_columns(bank, left_out)
    settings = settings_by_task(bank.responses.items)
    if bank.published is None:
        prepare(bank, progress=progress)  # the first estimate of a task is then as fast as the next
    tasks = tuple(f"{name}_{original}" for original in documents)
    with replacing_folder(path) as folder:
        save_bank(bank, folder / BANK)
        selection.save(folder / SELECTION)
        (folder / f"{MODULE}.py").write_text(CODE, encoding="utf-8")
        for original, task in zip(documents, tasks, strict=True):
            name_of_file = re.sub(r"[^A-Za-z0-9_.-]", "_", task)
            _write_yaml(folder / f"{name_of_file}.yaml", _task(task, original, bank.bank_id))
        group = [f"group: {json.dumps(name)}", f"task: {json.dumps(list(tasks))}", "metadata: {version: 1.0}"]
        _write_yaml(folder / f"{name}.yaml", group)
        if include_path is not None and needed is not None:
            copy_files(Path(include_path), needed, folder / TASKS, with_data=include_data)
        notes = tuple(_told(documents, settings, needed, with_data=include_data))
        text = _readme(bank, selection, documents, settings, notes, name=name, folder=path.name, needed=needed)
        (folder / "README.md").write_text(text, encoding="utf-8")
        files = file_sizes(folder)
    return ExportedTasks(tasks, files, left_out, notes)


def _task(task: str, original: str, bank_id: str) -> list[str]:
    return [
        f"task: {json.dumps(task)}",
        f"class: !function {MODULE}.Selected",
        f"metadata: {json.dumps({ORIGINAL: original, OF_BANK: bank_id})}",
    ]


def _told(
    documents: Mapping[str, Sequence[int]],
    settings: Mapping[str, Mapping[str, Any]],
    needed: TaskFiles | None,
    *,
    with_data: bool,
) -> Iterator[str]:
    unknown = [task for task in documents if "num_fewshot" not in settings.get(task, {})]
    if unknown:
        yield (
            f"The bank does not know how {shown(unknown)} were asked. Give the arguments that its runs had "
            "(--num_fewshot, --apply_chat_template)."
        )
    for name, called in IN_WORDS.items():
        differing = [task for task in documents if settings.get(task, {}).get(name) == DIFFERS]
        if differing:
            yield f"The bank's runs of {shown(differing)} differ in this: {called}."
    prompted = [task for task in documents if settings.get(task, {}).get("system_prompt") not in (None, "", DIFFERS)]
    if prompted:
        yield (
            f"The bank's runs of {shown(prompted)} had a system prompt, of which the bank keeps a digest alone. Ask "
            "for its text, and give it with --system_instruction."
        )
    if len({settings.get(task, {}).get("chat_template", False) for task in documents}) > 1:
        yield "Some tasks were asked with a chat template and others without. Run them apart."
    for task, groups in ({} if needed is None else needed.changes).items():
        known = UNCHANGED | ({"num_fewshot"} if "num_fewshot" in settings.get(task, {}) else set())
        for group, names in groups.items():
            if set(names) - known:
                what = ", ".join(name for name in names if name not in known)
                yield (
                    f"The group {group!r} changes {what} of {task!r}. Exported is {task!r} as it stands by itself: its "
                    "prompts are other ones where the bank's runs named the group."
                )
    if needed is not None and needed.data and not with_data:
        yield (
            f"The data files of the tasks stay where they are, {shown([path.as_posix() for path in needed.data])}: "
            "whoever runs the tasks needs them. To copy them, too: --include-data."
        )


def _write_yaml(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _readme(
    bank: Bank,
    selection: Selection,
    documents: Mapping[str, Sequence[int]],
    settings: Mapping[str, Mapping[str, Any]],
    notes: Sequence[str],
    *,
    name: str,
    folder: str,
    needed: TaskFiles | None,
) -> str:
    items = bank.responses.items
    judged = {row["task"]: row for row in items.select("task", "metric", "filter").iter_rows(named=True)}
    rows = [
        (
            f"{name}_{task}",
            len(numbers),
            task,
            judged[task]["metric"],
            judged[task]["filter"] or "",
            settings_in_words(settings.get(task, {})) or "not known",
        )
        for task, numbers in documents.items()
    ]
    return README.format(
        name=name,
        folder=folder,
        n_items=selection.n_items,
        n_total=bank.n_items,
        method=selection.method,
        tasks=shown(list(documents)),
        arguments=harness_arguments(settings, documents),
        rows=table(("task", "documents", "of", "metric", "filter", "the bank's runs had"), rows),
        notes="".join(f"\n- {escaped(one, most=len(one))}" for one in notes) + ("\n" if notes else ""),
        bank=bank.bank_id,
        responses="with its past models' responses" if bank.published is None else "without past models' responses",
        originals="the code; the original tasks are the harness's own"
        if needed is None
        else "what the tasks need of the original ones",
    )


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
    """Find what these tasks need of a folder, where they are in it; no links are followed, no dot files are read."""
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
        for function in (text for text in _texts(config) if isinstance(text, _Function)):
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
