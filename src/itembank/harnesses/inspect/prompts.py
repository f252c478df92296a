"""How a task of Inspect is about to ask, compared with how the bank's models were asked; loaded by Inspect only."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl
from inspect_ai import Task
from inspect_ai._eval.loader import resolve_task_args, solver_from_spec
from inspect_ai._eval.task.constants import TASK_ALL_PARAMS_ATTR
from inspect_ai._eval.task.log import plan_to_eval_plan
from inspect_ai._eval.task.run import resolve_plan
from inspect_ai._util.json import to_json_safe
from inspect_ai.solver import SolverSpec

from itembank.bank.banks import Bank
from itembank.errors import DataWarning, warn
from itembank.harnesses.inspect.task_items import TaskItems
from itembank.harnesses.protocol import refuse_prompts
from itembank.readers.inspect_runs import LogFile, run_of
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.prompts import PROMPT_SETTINGS, prompt_differences, settings_text

ADVICE = (
    "Give the arguments of the task (--task-arg NAME=VALUE), the solver and the system message that the bank's runs "
    "had. The bank knows a digest of long texts only."
)


def check_prompts(bank: Bank, known: TaskItems, settings: Mapping[str, Any], *, is_ignored: bool = False) -> None:
    """Compare how a task asks with how the bank's models were asked; no model has been called yet.

    Parameters
    ----------
    bank : Bank
    known : TaskItems
    settings : mapping of setting to value
        As `itembank.responses.prompts` names them.
    is_ignored : bool
        Say that they differ, and go on.

    Raises
    ------
    IntegrityError
        When they differ.
    """
    ids = pl.Series("item_id", list(known.items.values()), dtype=pl.String)
    asked = ids.to_frame().with_columns(pl.lit(settings_text(settings), dtype=pl.String).alias(PROMPT_SETTINGS))
    told = prompt_differences(asked, bank.responses.items)
    if told and not is_ignored:
        refuse_prompts(told, ADVICE)
    if told:
        warn(f"{told}. The run goes on with these prompts.", DataWarning)


def arguments_told(task: Task) -> dict[str, Any]:
    """Return version and arguments of a task, which no option of Inspect's command can change."""
    return {name: value for name, value in _told(task).items() if name in {"version", "task_args"}}


def solvers_told(task: Task, arguments: Sequence[str]) -> dict[str, Any]:
    """Return solvers and system prompts of a task that is run with these arguments of Inspect's command.

    They are unknown where a file says them.
    """
    given = _given(arguments)
    if given["solver_config"] or given["run_config"] or given["generate_config"]:
        return {}
    config = {} if given["system_message"] is None else {"system_message": given["system_message"]}
    named = given["solver"]
    solver = None if named is None else solver_from_spec(SolverSpec(named, _values_by_name(given["solver_args"])))
    told = _told(task, {"model_generate_config": config}, solver)
    return {name: value for name, value in told.items() if name not in {"version", "task_args"}}


def _values_by_name(pairs: Sequence[str]) -> dict[str, Any]:
    """Turn NAME=VALUE into a mapping; values that are JSON are read as such."""
    found: dict[str, Any] = {}
    for name, _, value in (pair.partition("=") for pair in pairs):
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _told(task: Task, about: Mapping[str, Any] | None = None, solver: Any = None) -> dict[str, Any]:
    """Return the settings that the reader of logs would find in the log of a task."""
    about = about or {}
    arguments = getattr(task, TASK_ALL_PARAMS_ATTR, resolve_task_args(task))
    own = {"task": "task", "model": "none", "task_version": task.version, "task_args": arguments}
    plan = plan_to_eval_plan(resolve_plan(task, solver), task.config)
    header = json.loads(to_json_safe({"eval": {**own, **about}, "plan": plan}))  # as Inspect writes logs
    header["plan"]["config"] = {**(header["plan"].get("config") or {}), **about.get("model_generate_config", {})}
    return dict(run_of(LogFile(Path("task"), header, []), ReadingSpec()).settings)


def _given(arguments: Sequence[str]) -> dict[str, Any]:
    """Read the options of Inspect's command that make prompts."""
    names = ("--solver", "--solver-config", "--run-config", "--generate-config", "--system-message")
    command = click.Command(
        "eval",
        params=[*(click.Option([name]) for name in names), click.Option(["-S", "solver_args"], multiple=True)],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
    return command.make_context("eval", list(arguments)).params
