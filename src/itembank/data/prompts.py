"""How items were asked: a hash of each prompt, and the settings of the task that made it.

Both are columns of the item table, and so travel with responses, banks and published banks. A bank of responses that
came from no harness has neither.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

PROMPT_HASH: Final = "prompt_hash"
"""Hash of the prompt where all models had the same one; `DIFFERS` where they had not; null where nobody told."""
PROMPT_SETTINGS: Final = "prompt_settings"
"""Settings of the item's task, as `settings_text` writes them; null where nobody told."""
DIFFERS: Final = "differs"
"""In place of a hash or of one setting: models had different ones."""

IN_WORDS: Final[Mapping[str, str]] = {
    "num_fewshot": "shots",
    "version": "task version",
    "chat_template": "chat template",
    "fewshot_as_multiturn": "shots as turns of a chat",
    "system_prompt": "system prompt",
    "fewshot_seed": "few-shot seed",
    "task_args": "task arguments",
    "solver": "solver",
}
"""Settings that a log can tell, and what they are called; the order is that in which they are printed.

``chat_template`` and ``fewshot_as_multiturn`` are true or false: each model has a template of its own.
``system_prompt`` and ``solver`` are short digests of the text, empty where there was none.
"""


def settings_text(settings: Mapping[str, Any]) -> str | None:
    """Write settings as JSON with sorted keys; None for none, and unknown ones (None) are left out."""
    known = {name: value for name, value in settings.items() if value is not None}
    return json.dumps(known, sort_keys=True, ensure_ascii=False) if known else None


def settings_by_task(items: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Settings of each task of an item table that tells them; of its scenario where it names no tasks."""
    if PROMPT_SETTINGS not in items.columns:
        return {}
    task = "task" if "task" in items.columns else "scenario"
    pairs = items.select(task, PROMPT_SETTINGS).drop_nulls().unique(subset=task, keep="first", maintain_order=True)
    return {name: json.loads(text) for name, text in pairs.iter_rows()}
