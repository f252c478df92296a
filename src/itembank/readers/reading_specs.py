"""`ReadingSpec`: how per-item results are to be understood."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, get_args

from itembank.checks import check_names, check_one_of, check_positive
from itembank.errors import ParameterError, remedy, shell_word, shown
from itembank.readers.sources import TABLES, sources
from itembank.responses.error_kinds import Errors

Format: TypeAlias = str
Response = Literal["metric", "accuracy", "accuracy-per-character", "probability", "probability-per-character"]
Repeats = Literal["error", "count", "mean", "last"]
Missing = Literal["allow", "forbid"]
ModelIdFrom = Literal["name", "args", "folder"]

COST_COLUMNS = ("input_tokens", "output_tokens", "cost_usd", "seconds")
LONG_COLUMNS = (
    "model_id",
    "item_id",
    "response",
    "scenario",
    "subscenario",
    "n_trials",
    "n_correct",
    "seed",
    "epoch",
    "error",
    "n_errors",
    "metric",
    "judge",
    *COST_COLUMNS,
)


def check_format(what: str, name: Format) -> None:
    """Refuse what is no format; installed packages are asked for what is not our own."""
    if name not in TABLES:
        check_one_of(what, name, (*TABLES, *sources()))


@dataclass(frozen=True, slots=True)
class ReadingSpec:
    """How to read per-item results; the defaults suit files that use the project's own column names.

    Attributes
    ----------
    format : str
        'auto' looks at the file. 'responses' is the file `write_responses` makes; 'long' one row a response;
        'wide-models' one row a model and one column an item; 'wide-items' one row an item and one column a
        model; the others are the names of programs, as `itembank import --as` has them: 'py-irt', 'lm-eval', ...
    jq : str or None
        A program of jq that makes rows of JSON of any shape, objects with the names of a long table's columns; or the
        path of a file that holds one, which ends in ``.jq``. See `itembank.readers.jq_rows`.
    response_column : str
        Column of the response in a long table.
    columns : mapping of our name to the file's
        For tables that use other names: ``{"model_id": "model", "seconds": "latency_s"}``. Several columns with a plus
        between them make one: ``{"model_id": "agent+model"}``.
    drop_columns : tuple of str
        Tables: columns that are not there, as names or patterns (``note_*``).
    where : mapping of a column to a value
        Tables: only rows with these values, as text, are read: ``{"judge": "gpt-4o"}``.
    missing_values : tuple of str
        Values of a response that is missing (case does not matter), beside an empty one, ``NA``, ``null`` and the like.
    true_value : str or None
        Tables: the value of a response that is right, where responses are words (case does not matter). What is wrong
        is its usual counterpart (`incorrect` of `correct`), or the only other value. Without it, columns that hold one
        usual pair of words and nothing else are read so.
    max_response : float
        Every response is divided by this: 100 for percentages.
    scenario : str or None
        Scenario of the items that have none.
    prefix_scenario : bool
        Put the scenario before each item id ('scenario/item_id'), for tables that number items anew in each.
    metric, filter_name : tuples of str
        Harness logs: the metrics (filters) to take as response, in order of preference. ``task=name`` holds for
        the tasks that match the pattern `task` alone. Of Inspect's logs `metric` names scorers. Empty: the
        usual ones of each task. Of long tables with a column `metric`, the rows of this metric are read.
        ``pass^4`` makes the response of an item the probability that 4 trials all succeed, of results whose trials
        are counted.
    response : str
        Harness logs: 'metric' takes a logged metric; the others are made of the log-likelihoods of the answer
        options: 'accuracy' (the most likely one is right), 'accuracy-per-character', 'probability' (softmax over the
        options) or 'probability-per-character' (geometric mean over the characters of the right one). A `metric`
        chosen for some tasks alone goes before.
    tasks, exclude_tasks : tuple of str
        Harness logs: read only tasks that match one of these patterns (``mmlu_*``), and none that match the others.
    task_names : mapping of a task's name to the name it gets
        Harness logs: for tasks that another run, or a bank, has under another name. Every other choice of tasks is by
        the new names.
    skip_unusable : bool
        Leave out files, tasks and runs that cannot be read, with a `DataWarning` for each that says why, instead of
        refusing the whole.
    exclude_files : tuple of str
        Files that are not read: those whose path ends in what one of these patterns matches (``*.bak.json``,
        ``old/*``), and those below a folder of such a name (``old``).
    model_id : str or None
        Id of the model, for logs and tables of one model that do not name it well.
    model_names : mapping of a model's id to the name it gets
        Response files and tables: for sets of results that name the same model differently.
    model_id_from : {'name', 'args', 'folder'}
        Harness logs: what tells models apart: the model's name, the arguments it was loaded with (they hold
        the revision), or the folder of the log.
    use_groups : bool
        Harness logs: the outermost group of a task is the scenario and the task the subscenario.
    ignore_content : bool
        Harness logs: take items whose content differs between models as the same item anyway.
    allow_mixed_prompts : bool
        Join models that were asked with different prompts, or judged by different judges (column `judge`).
    repeats : {'error', 'count', 'mean', 'last'}
        Several responses of one model to one item: refuse; count successes and trials (each must be right or wrong,
        or carry counts itself); average whatever they are (and say in `n_trials` how many); or take the last. That is
        of the last file (below a folder run10 comes after run9); within a long table by `epoch` or another column of
        attempts or times (`run`, `timestamp`), if its numbers or times (ISO 8601) tell all repeats apart; else the
        last row.
    missing : {'allow', 'forbid'}
        Whether an item may lack the response of a model.
    errors : {'missing', 'wrong', 'bounds'} or None
        What lost answers count as, which ended in an error or are without a response: nothing; wrong answers; or
        nothing, with intervals that hold whichever they are. None: `usual_errors`, what a response file says, or
        nothing.
    usual_errors : {'missing', 'wrong', 'bounds'} or None
        The same, of results that may not tell lost answers from others: what they count as in the bank (`spec_like`).
    max_memory : float or None
        Bytes that reading may take. None: half of what the machine has; then files that grow when unpacked, or ask
        for a matrix that is nearly empty, are refused, since they are seldom what they seem.
    """

    format: Format = "auto"
    jq: str | None = None
    response_column: str = "response"
    columns: Mapping[str, str] = field(default_factory=dict)
    drop_columns: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    missing_values: tuple[str, ...] = ()
    true_value: str | None = None
    max_response: float = 1.0
    scenario: str | None = None
    prefix_scenario: bool = False
    metric: tuple[str, ...] = ()
    filter_name: tuple[str, ...] = ()
    response: Response = "metric"
    tasks: tuple[str, ...] = ()
    exclude_tasks: tuple[str, ...] = ()
    task_names: Mapping[str, str] = field(default_factory=dict)
    skip_unusable: bool = False
    exclude_files: tuple[str, ...] = ()
    model_id: str | None = None
    model_names: Mapping[str, str] = field(default_factory=dict)
    model_id_from: ModelIdFrom = "name"
    use_groups: bool = False
    ignore_content: bool = False
    allow_mixed_prompts: bool = False
    repeats: Repeats = "error"
    missing: Missing = "allow"
    errors: Errors | None = None
    usual_errors: Errors | None = None
    max_memory: float | None = None

    def __post_init__(self) -> None:
        """Check every choice."""
        choices = {"response": Response, "repeats": Repeats, "missing": Missing, "model_id_from": ModelIdFrom}
        check_format("format", self.format)
        if self.jq is not None:
            if self.format not in {"auto", "long"}:
                raise ParameterError(f"a program of jq makes long tables: leave {remedy('format', '--as')} out.")
            object.__setattr__(self, "format", "long")
        for name, allowed in choices.items():
            check_one_of(name, getattr(self, name), get_args(allowed))
        if self.errors is not None:
            check_one_of("errors", self.errors, get_args(Errors))
        check_positive("max_response", self.max_response)
        if self.max_memory is not None:
            check_positive("max_memory, in bytes,", self.max_memory)
        if self.true_value is not None and (not self.true_value.strip() or self.max_response != 1.0):
            raise ParameterError(
                f"true_value must be a word, beside a max_response of 1, got {self.true_value!r} and "
                f"{self.max_response:g}."
            )
        if self.response != "metric":
            self._check_response()
        if any(list(map(power_of, self.metric))) and self.repeats in {"mean", "last"}:
            raise ParameterError(
                f"pass^k counts repeated trials: leave {remedy('repeats', '--repeats')} out, got {self.repeats!r}."
            )
        unknown = [name for name in self.columns if name not in LONG_COLUMNS]
        if unknown:
            raise ParameterError(f"columns must name some of {', '.join(LONG_COLUMNS)}, got {shown(unknown)}.")
        named = [*self.columns.values(), self.response_column, *self.where]
        check_names("columns to be read", [part.strip() for name in named for part in name.split("+")])

    def _check_response(self) -> None:
        """Refuse a response made of log-likelihoods together with what only logged metrics have."""
        general = [name for name in self.metric if "=" not in name]
        if general:
            raise ParameterError(
                f"response={self.response!r} takes no logged metric, got metric {shown(general)}; a metric may be "
                f"chosen for some tasks beside it: 'gsm8k={general[0]}'."
            )
        if self.max_response != 1.0:
            raise ParameterError(
                f"max_response must be 1 for response={self.response!r}, which lies in [0, 1], got "
                f"{self.max_response:g}."
            )

    def of_trials(self) -> "ReadingSpec":
        """Return the choices by which trials are read and counted, of which pass^k is made afterwards."""
        metric = tuple(name for name in self.metric if not power_of(name))
        if metric == self.metric:
            return self
        return replace(self, metric=metric, repeats="count" if self.repeats == "error" else self.repeats)

    def leaves_out(self, path: PurePath) -> bool:
        """Whether a file is one of those that are not read."""
        text = f"/{path.as_posix()}"
        return any(fnmatchcase(text, f"*/{one}") or fnmatchcase(text, f"*/{one}/*") for one in self.exclude_files)

    def drops(self, column: str) -> bool:
        """Whether a column of a table is one that is not there."""
        return any(column == one or fnmatchcase(column, one) for one in self.drop_columns)

    @property
    def names_response(self) -> bool:
        """Whether it is told which column of a table has the responses."""
        return self.response_column != "response" or "response" in self.columns

    def column(self, name: str) -> str:
        """Return the name that the file gives one of our columns."""
        if name == "response" and self.response_column != "response":
            return self.response_column
        return self.columns.get(name, name)


def power_of(name: str) -> int:
    """Return the k of a metric that is called pass^k, of some tasks or all; 0 of another."""
    _, is_power, k = name.rpartition("=")[2].partition("pass^")
    if not is_power or _:
        return 0
    if not (k.isascii() and k.isdigit() and int(k) > 0):
        raise ParameterError(f"pass^k must have a whole number of at least 1 for k, got {name!r}.")
    return int(k)


def choices_for(task: str, choices: Sequence[str]) -> list[str]:
    """Return what is chosen for a task, in order of preference: what ``pattern=name`` says of it by name goes first."""
    own = [one.partition("=")[::2] for one in choices if "=" in one]
    return [name for pattern, name in own if fnmatchcase(task, pattern)] + [name for name in choices if "=" not in name]


OPTIONS = {"columns": "--column", "drop_columns": "--drop-column", "missing_values": "--missing", "tasks": "--task"}
"""Options of the command line that are not called as the field of `ReadingSpec` that they set."""
IN_FILE = ("exclude_tasks", "exclude_files", "skip_unusable", "filter_name", "scenario")
"""Fields without an option."""


def _options(choices: Mapping[str, Any]) -> str:
    """Write choices of a `ReadingSpec` as options of the command line, and as fields of the file of `--spec`."""
    words, in_file = [], []
    for name, value in choices.items():
        if name in IN_FILE:
            in_file += [f"{name} = {json.dumps(value, ensure_ascii=False)}"] if value else []
            continue
        several = [f"{key}={one}" for key, one in value.items()] if isinstance(value, Mapping) else value
        several = several if isinstance(several, list | tuple) else [several]
        given = (f"{one:g}" if isinstance(one, float) else str(one) for one in several)
        option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
        words += [option] if value is True else [f"{option} {shell_word(one)}" for one in given]
    fields_of_file = [f"{', '.join(in_file)} in the file of --spec"] if in_file else []
    return ", and ".join([*filter(None, [" ".join(words)]), *fields_of_file])


def how(**choices: Any) -> str:
    """Say how choices of a `ReadingSpec` are made: as arguments, or as options of the command line."""
    given = (f"{name}={value:g}" if type(value) is float else f"{name}={value!r}" for name, value in choices.items())
    return remedy(", ".join(given), _options(choices))


def how_to_add(spec: ReadingSpec, typed: Mapping[str, Any] | None = None, **choices: Any) -> str:
    """Say how choices are added to those of a spec: as the whole spec, or as further options of the command line.

    Of `typed` the command line says the choices in other words.
    """
    default = ReadingSpec()
    values = {one.name: getattr(spec, one.name) for one in fields(spec)}
    for name, value in choices.items():
        if isinstance(value, Mapping):
            values[name] = {**values[name], **value}
        else:
            values[name] = (*values[name], *value) if isinstance(value, tuple) else value
    changed = ", ".join(f"{name}={value!r}" for name, value in values.items() if value != getattr(default, name))
    return remedy(f"spec=ReadingSpec({changed})", _options({**choices, **(typed or {})}))


def how_to_name_model() -> str:
    """Say how the one model of some results gets a name."""
    return remedy("model_id='...'", "--model-id NAME")
