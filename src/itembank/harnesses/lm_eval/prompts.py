"""Prompts that the harness has built, before any of them is sent: those of the bank, and of samples that are kept."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from itembank.errors import DataError, DataWarning, shown, warn
from itembank.harnesses.lm_eval.command import USUAL_SEED
from itembank.harnesses.lm_eval.documents import Documents, Prepared, item_id
from itembank.harnesses.lm_eval.rows import Rows
from itembank.harnesses.protocol import refuse_prompts
from itembank.readers.lm_eval_files import run_of
from itembank.responses.prompts import (
    DIFFERS,
    PROMPT_HASH,
    PROMPT_SETTINGS,
    joined_settings,
    prompt_differences,
    settings_by_task,
    settings_text,
)


@dataclass(slots=True)
class BankPrompts:
    """How a bank's items were asked, and what a run does with it."""

    items: pl.DataFrame  # The bank's table of items
    sets_shots: bool = True  # Whether tasks are given the bank's numbers of shots; not where the user names another
    fewshot_seed: int | None = USUAL_SEED  # Of the run; None where it is not known
    # Whether a chat template will be applied, where prompts are built without a model; None where there is one.
    has_template: bool | None = None
    is_ignored: bool = False  # Say once that prompts differ, and go on
    _has_warned: bool = field(default=False, init=False)

    def set_shots(self, tasks: Mapping[str, Any]) -> None:
        """Give loaded tasks the numbers of shots that the bank's runs had, which a group may have changed."""
        if not self.sets_shots:
            return
        known = settings_by_task(self.items)
        now = _settings(tasks, {})
        for name, task in tasks.items():
            n_shots = known.get(name, {}).get("num_fewshot")
            if isinstance(n_shots, int) and n_shots != now.get(name, {}).get("num_fewshot"):
                task.set_config(key="num_fewshot", value=n_shots)

    def check(
        self, prepared: Mapping[str, Prepared], tasks: Mapping[str, Any], asked: Documents, arguments: Mapping[str, Any]
    ) -> None:
        """Compare the prompts that were built with the bank's.

        Parameters
        ----------
        prepared : mapping of task to its requests
        tasks : mapping of task to what the harness loaded
        asked : documents by task
            Those that are, or may be, run.
        arguments : mapping
            What the harness builds requests with.

        Raises
        ------
        IntegrityError
            When prompts differ, unless that is to be ignored.
        """
        general = {
            "chat_template": bool(arguments.get("apply_chat_template")),
            "fewshot_as_multiturn": bool(arguments.get("fewshot_as_multiturn")),
            "system_instruction": arguments.get("system_instruction"),
            "fewshot_seed": self.fewshot_seed,
        }
        if self.has_template is not None:
            general |= {"chat_template": self.has_template, "fewshot_as_multiturn": None}
        settings = {task: settings_text(one) for task, one in _settings(tasks, general).items()}
        hashes = {} if self.has_template else prompt_hashes(prepared)
        rows = [
            {"item_id": item, PROMPT_HASH: hashes.get(item), PROMPT_SETTINGS: settings.get(task)}
            for task, numbers in asked.items()
            for item in (item_id(task, number) for number in numbers)
        ]
        schema = dict.fromkeys(("item_id", PROMPT_HASH, PROMPT_SETTINGS), pl.String)
        told = prompt_differences(pl.DataFrame(rows, schema=schema), self.items)
        if told and not self.is_ignored:
            refuse_prompts(told, self._advice())
        if told and not self._has_warned:
            self._has_warned = True
            warn(f"{told}. The run goes on with these prompts.", DataWarning)

    def _advice(self) -> str:
        """Say what makes prompts the bank's."""
        own = joined_settings(settings_by_task(self.items).values())
        system = (
            " The bank knows a digest of the system prompt only: give its text (--system_instruction)."
            if own.get("system_prompt")
            else ""
        )
        return (
            "Leave out the arguments of lm_eval that make prompts (--num_fewshot, --apply_chat_template, --seed, ...): "
            f"those of the bank's runs are taken then; name the group (--tasks) where they named one.{system}"
        )


def arguments_of(items: pl.DataFrame, tasks: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of the harness's `simple_evaluate` that make the prompts of all these tasks, but for shots.

    Only those that differ from what the harness takes by itself, and on which all tasks agree.
    """
    from lm_eval import evaluator  # noqa: PLC0415

    known = settings_by_task(items)
    joined = joined_settings(known[task] for task in tasks if task in known)
    agreed = {name: value for name, value in joined.items() if value != DIFFERS}
    found: dict[str, Any] = {}
    if agreed.get("chat_template") is True:
        found["apply_chat_template"] = True
        turns = inspect.signature(evaluator.simple_evaluate).parameters["fewshot_as_multiturn"].default
        if agreed.get("fewshot_as_multiturn", turns) != turns:
            found["fewshot_as_multiturn"] = not turns
    if agreed.get("fewshot_seed", USUAL_SEED) != USUAL_SEED:
        found["fewshot_random_seed"] = agreed["fewshot_seed"]
    return found


def prompt_hashes(prepared: Mapping[str, Prepared]) -> dict[str, str]:
    """Return the hash of each item's prompt as the harness logs it: of the first request's first argument."""
    from lm_eval.utils import hash_string  # noqa: PLC0415

    found = {}
    for task, one in prepared.items():
        for number, requests in one.requests.items():
            first = min(requests, key=lambda request: request.idx)
            found[item_id(task, number)] = str(hash_string(first.arguments[0]))
    return found


def check_kept_prompts(rows: Rows, prepared: Mapping[str, Prepared]) -> None:
    """Check that items with samples had the prompts that the harness has built now.

    Raises
    ------
    DataError
        Naming those that had others; no request was sent.
    """
    if not rows.by_item:
        return
    built = prompt_hashes(prepared)
    kept = {name: samples[0].get(PROMPT_HASH) for name, (_, samples) in rows.by_item.items() if name in built}
    unlike = [name for name, prompt in kept.items() if prompt is not None and prompt != built[name]]
    if unlike:
        raise DataError(
            f"a run goes on with the prompts that it was started with, and {len(unlike)} of {len(kept)} answered items "
            f"have others now: {shown(unlike)}. No request was sent. Give the arguments of lm_eval that make prompts "
            "(shots, seed, templates, system instruction) as before, or take another folder."
        )


def _settings(tasks: Mapping[str, Any], general: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of loaded tasks, as the reader of the harness's logs finds them in its results."""
    about: dict[str, Any] = {name: general[name] for name in ("fewshot_as_multiturn", "system_instruction") if general}
    if general:
        about["chat_template"] = "applied" if general["chat_template"] else None
        about["config"] = {"fewshot_seed": general["fewshot_seed"]}
    configs = {
        name: {"num_fewshot": task.get_config("num_fewshot"), "metadata": task.get_config("metadata")}
        for name, task in tasks.items()
    }
    versions = {name: task.VERSION for name, task in tasks.items()}
    found = run_of({**about, "configs": configs, "versions": versions}, "").settings
    return {name: dict(one) for name, one in found.items()}
