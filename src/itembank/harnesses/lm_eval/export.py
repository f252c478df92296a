"""Writing a folder of tasks that the harness's stock command runs."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from itembank.bank.bank_files import save_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import ParameterError, shown
from itembank.files.atomic import check_destination, replacing_folder
from itembank.harnesses.lm_eval.documents import chosen_documents
from itembank.harnesses.lm_eval.exported import BANK, SELECTION, TASKS
from itembank.harnesses.lm_eval.task_files import TaskFiles, copy_files, needed_files
from itembank.progress import ProgressCallback, silent
from itembank.publishing.markdown import escaped, table
from itembank.publishing.question_text import left_out_of_models, question_columns, without_columns
from itembank.publishing.task_files import file_sizes, harness_arguments
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


@dataclass(frozen=True, slots=True)
class ExportedTasks:
    """What was written."""

    tasks: tuple[str, ...]
    files: Mapping[str, int]  # Bytes of each file
    left_out: tuple[str, ...]  # Columns of the bank's tables that stayed
    notes: tuple[str, ...]  # What the tasks cannot do by themselves: sentences for whoever runs them


def export_tasks(
    bank: Bank,
    selection: Selection,
    path: str | Path,
    *,
    name: str = "tiny",
    include_path: str | Path | None = None,
    include_data: bool = False,
    progress: ProgressCallback = silent,
) -> ExportedTasks:
    """Write a folder that ``lm_eval --include_path PATH --tasks NAME`` runs.

    Parameters
    ----------
    bank : Bank
        It goes into the folder with its responses, where it has any; intervals of a task's own score need them. Columns
        of items that look like questions, and those of models that nothing needs, are left out.
    selection : Selection
    path : path
        A folder that is new or empty.
    name : str
        Of the group of tasks; a task is called ``NAME_ORIGINAL``.
    include_path : path, optional
        Tasks of your own that the harness does not bring, as its `--include_path`. Copied are the YAML files and
        modules that the chosen tasks name: no other tasks, no links, no dot files, nothing outside of the folder.
    include_data : bool
        Copy the data files, too, that the `dataset_kwargs` of these tasks name.
    progress : ProgressCallback

    Returns
    -------
    ExportedTasks

    Raises
    ------
    ParameterError
        For a name that no task can have, a folder that is not empty, or responses that no metric of the harness is.
    DataError
        When an item is not ``task/doc_id``, or a task needs files that may not be copied.
    MissingDependencyError
        With `include_path`, when PyYAML is not installed.
    """
    path = Path(path)
    documents = chosen_documents(selection)
    _check(bank, documents, path, name)
    needed = None if include_path is None else _needed(Path(include_path), bank, documents)
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
            _write_yaml(folder / f"{_file_name(task)}.yaml", _task(task, original, bank.bank_id))
        group = [f"group: {_quoted(name)}", f"task: {json.dumps(list(tasks))}", "metadata: {version: 1.0}"]
        _write_yaml(folder / f"{name}.yaml", group)
        if include_path is not None and needed is not None:
            copy_files(Path(include_path), needed, folder / TASKS, with_data=include_data)
        notes = _notes(documents, settings, needed, with_data=include_data)
        text = _readme(bank, selection, documents, settings, notes, name=name, folder=path.name, needed=needed)
        (folder / "README.md").write_text(text, encoding="utf-8")
        files = file_sizes(folder)
    return ExportedTasks(tasks, files, left_out, notes)


def _needed(folder: Path, bank: Bank, documents: Iterable[str]) -> TaskFiles:
    """Return the files that tasks need, which the harness may call otherwise than the bank."""
    own = names_in_harness(bank.responses.items)
    names = {own.get(task, task): task for task in documents}
    needed = needed_files(folder, list(names))
    return replace(needed, changes={names[task]: groups for task, groups in needed.changes.items()})


def _check(bank: Bank, documents: Mapping[str, Sequence[int]], path: Path, name: str) -> None:
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


def _task(task: str, original: str, bank_id: str) -> list[str]:
    return [
        f"task: {_quoted(task)}",
        f"class: !function {MODULE}.Selected",
        f"metadata: {json.dumps({ORIGINAL: original, OF_BANK: bank_id})}",
    ]


def _notes(
    documents: Mapping[str, Sequence[int]],
    settings: Mapping[str, Mapping[str, Any]],
    needed: TaskFiles | None,
    *,
    with_data: bool,
) -> tuple[str, ...]:
    """Say what makes prompts of these tasks that no task file can hold, or that is not known."""
    return tuple(_told(documents, settings, needed, with_data=with_data))


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


def _quoted(text: str) -> str:
    """Write a text as YAML reads it, whatever is in it: a JSON string is one."""
    return json.dumps(text)


def _file_name(task: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", task)


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
