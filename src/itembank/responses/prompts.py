"""How items were asked: a hash of each prompt, and the settings of the task that made it.

Both are columns of the item table, and so travel with responses, banks and published banks. A bank of responses that
came from no harness has neither.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataWarning, remedy, shown, warn
from itembank.files.documents import digest_of
from itembank.numerics.arrays import IntArray
from itembank.responses.secrets import without_secrets
from itembank.tables import plural

PROMPT_HASH: Final = "prompt_hash"
"""Hash of the prompt where all models had the same one; `DIFFERS` where they had not; null where nobody told."""
PROMPT_SETTINGS: Final = "prompt_settings"
"""Settings of the item's task, as `settings_text` writes them; null where nobody told."""
PROMPTS: Final = (PROMPT_HASH, PROMPT_SETTINGS)
DIFFERS: Final = "differs"
"""In place of a hash or of one setting: models had different ones."""
JUDGE: Final = "judge"
"""Setting of what scored the answers: no prompt, but compared like one."""
VERSION: Final = "version"
"""Setting of the version of a task."""
HIGHEST: Final = "highest_reward"
"""Setting of the response, or reward, that counts as one: the same on another scale is another response."""
ROLES: Final = "model_roles"
"""Setting of the models that took part beside the tested one, graders and helpers; empty where there were none."""
TASK_NAME: Final = "task_name"
"""Setting of a task that was renamed when its logs were read: what the harness calls it."""
N_DIGITS: Final = 15
"""Hexadecimal digits that are kept of a prompt's SHA-256: 60 bits, a whole number that is not negative."""
NO_HASH: Final = -1
"""In place of the number of a hash: nobody told."""
_HEXADECIMAL = re.compile(f"[0-9a-fA-F]{{{N_DIGITS}}}")

IN_WORDS: Final[Mapping[str, str]] = {
    "num_fewshot": "shots",
    VERSION: "task version",
    "chat_template": "chat template",
    "fewshot_as_multiturn": "shots as turns of a chat",
    "system_prompt": "system prompt",
    "fewshot_seed": "few-shot seed",
    "task_args": "task arguments",
    "solver": "solver",
    "solver_args": "solver arguments",
    "timeouts": "time limits",
    "user": "simulated user",
    JUDGE: "judge",
    HIGHEST: "highest response (--max-response)",
    ROLES: "model roles",
    "scorer_args": "scorer arguments",
    TASK_NAME: "task name",
}
"""Settings that a log can tell, and what they are called; the order is that in which they are printed.

``chat_template`` and ``fewshot_as_multiturn`` are true or false: each model has a template of its own.
``system_prompt`` is a short digest of the text, empty where there was none. ``task_args``, ``solver_args`` and
``scorer_args`` are texts of `entries_text`: an argument that only one of two runs tells is one with a default, and says
nothing. ``task_name`` makes no prompt, and is not compared.
"""


def settings_text(settings: Mapping[str, Any]) -> str | None:
    """Write settings as JSON with sorted keys; None for none, and unknown ones (None) are left out."""
    known = {name: value for name, value in settings.items() if value is not None}
    return json.dumps(known, sort_keys=True, ensure_ascii=False) if known else None


def settings_by_task(items: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the settings of each task of an item table that tells them; of its scenario where it names no tasks."""
    if PROMPT_SETTINGS not in items.columns:
        return {}
    task = "task" if "task" in items.columns else "scenario"
    pairs = items.select(task, PROMPT_SETTINGS).drop_nulls().unique(subset=task, keep="first", maintain_order=True)
    return {name: _settings_of(text) for name, text in pairs.iter_rows()}


def names_in_harness(items: pl.DataFrame) -> dict[str, str]:
    """Return what the harness calls the tasks of an item table that were renamed when their logs were read."""
    names = {task: settings.get(TASK_NAME, DIFFERS) for task, settings in settings_by_task(items).items()}
    return {task: name for task, name in names.items() if name != DIFFERS}


def joined_settings(all_settings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of several runs as one: a setting that differs among those that tell it is `DIFFERS`."""
    joined: dict[str, Any] = {}
    for settings in all_settings:
        for name, value in settings.items():
            known = joined.get(name)
            both = _entries(known), _entries(value)
            if both[0] and both[1]:
                joined[name] = entries_text(joined_settings(both))
            elif value is not None:
                joined[name] = value if known is None or known == value else DIFFERS
    return joined


def entries_text(entries: Mapping[str, Any]) -> str:
    """Write arguments as "cot=False, n=40", without secrets; what would be longer than 200 characters as its digest."""
    text = without_secrets(", ".join(f"{name}={entries[name]}" for name in sorted(entries)))
    return text if len(text) <= 200 else short_digest(text)


def _entries(value: Any) -> dict[str, str]:
    """Return the arguments of such a text; none of anything else."""
    pairs = [one.partition("=") for one in value.split(", ")] if isinstance(value, str) else []
    return {name: one for name, _, one in pairs} if all(equals for _, equals, _ in pairs) else {}


def short_digest(text: str | None) -> str:
    """Return a digest of a system prompt or the like that a line has room for; empty where there is no text."""
    return digest_of(text.encode())[:8] if text else ""


def hash_numbers(hashes: Sequence[Any]) -> IntArray:
    """Return the first digits of prompts' hashes as numbers, `NO_HASH` for None, (n_prompts,).

    They take a tenth of the memory of the text. What is no hexadecimal text is hashed itself.
    """
    try:
        digits = bytes.fromhex("".join([one[:16] for one in hashes]))
        numbers = np.frombuffer(digits, dtype=">u8")
    except (TypeError, ValueError, KeyError):  # from Python 3.12 on a mapping is asked for a slice as for any key
        numbers = np.zeros(0, dtype=">u8")
    if numbers.size == len(hashes):
        return (numbers >> np.uint64(4)).astype(np.int64)
    return np.array([_hash_number(one) for one in hashes], dtype=np.int64)


def _hash_number(value: Any) -> int:
    if value is None:
        return NO_HASH
    text = str(value)
    digits = text if _HEXADECIMAL.match(text) else digest_of(text.encode())
    return int(digits[:N_DIGITS], 16)


def hash_texts(numbers: IntArray) -> list[str | None]:
    """Return what the item table holds for such numbers."""
    return [None if one < 0 else f"{one:0{N_DIGITS}x}" for one in numbers.tolist()]


def settings_in_words(settings: Mapping[str, Any], *, is_whole: bool = False) -> str:
    """Say settings in words, "4 shots, task version 2.5, no chat template"; the empty text where none is known.

    Only with `is_whole` the text says, too, that there was no system prompt.
    """
    absent = (None,) if is_whole else (None, "")
    return ", ".join(_in_words(name, settings[name]) for name in IN_WORDS if settings.get(name) not in absent)


def _in_words(name: str, value: Any) -> str:
    called = IN_WORDS.get(name, name)
    if name == "num_fewshot" and value != DIFFERS:
        return f"{value} shot" if value == 1 else f"{value} shots"
    if value is True or value == "":
        return called if value else f"no {called}"
    if value is False:
        return f"no {called}" if name == "chat_template" else f"not {called}"
    if value == DIFFERS:
        return f"{called} that differ" if called.endswith("s") else f"a {called} that differs"
    return f"{called} {value}"


def prompts_in_words(items: pl.DataFrame, *, most: int = N_SHOWN) -> list[str]:
    """Say how items were asked and judged, a line for each way: settings, metric, filter, and whose they are.

    Those of most items come first; after `most` of them the last line counts the others. Empty where nobody tells.
    """
    if PROMPT_SETTINGS not in items.columns:
        return []
    owner = "task" if "task" in items.columns else "scenario"
    names = [PROMPT_SETTINGS, *(name for name in ("metric", "filter") if name in items.columns)]
    ways = items.group_by(names, maintain_order=True).agg(pl.len(), pl.col(owner).unique(maintain_order=True))
    ways = ways.sort("len", descending=True, maintain_order=True)
    lines = []
    for text, *judged, _, owners in ways.head(most).iter_rows():
        parts = [settings_in_words(_settings_of(text)) or "settings unknown"]
        parts += [f"{name} {value}" for name, value in zip(names[1:], judged, strict=True) if value is not None]
        whose = "" if ways.height == 1 else f"{shown(owners)}: "
        lines.append(whose + ", ".join(parts))
    return [*lines, *([f"and {plural(ways.height - most, 'more way')}"] if ways.height > most else [])]


def words_of_items(items: pl.DataFrame) -> pl.Series:
    """Say of each item in words how it was asked, (n_items,); null where nobody tells."""
    texts = items[PROMPT_SETTINGS] if PROMPT_SETTINGS in items.columns else pl.Series([None] * items.height)
    texts = texts.cast(pl.String)
    known = texts.drop_nulls().unique(maintain_order=True).to_list()
    words = [settings_in_words(_settings_of(text)) or None for text in known]
    return texts.replace_strict(known, words, default=None, return_dtype=pl.String).alias("prompts")


def settings_apart(settings: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Names of the settings of prompts that both tell and that differ, in the order of `IN_WORDS`."""
    return [name for name in IN_WORDS if name != TASK_NAME and _is_apart(settings.get(name), known.get(name))]


def _is_apart(one: Any, other: Any) -> bool:
    ours, theirs = _entries(one), _entries(other)
    if ours and theirs:
        return any(_is_apart(ours[name], theirs[name]) for name in ours.keys() & theirs.keys())
    return None not in (one, other) and DIFFERS not in (one, other) and one != other


def prompt_differences(items: pl.DataFrame, known: pl.DataFrame, *, whose: str = "the bank's runs") -> str:
    """Say how the prompts of items differ from those of the known items of the same ids; empty where they do not.

    Where both have a hash of an item, the hashes decide, unless a chat template was applied to both: each model has its
    own. Elsewhere the settings decide; one that is unknown, or differs among the models of either, says nothing.
    Of a hash the first 15 digits are compared. Half a sentence: "prompts differ for 88 of 95 items: the bank's runs had
    4 shots, these have 0 shots".
    """
    both = _hashed(items).join(_hashed(known), on="item_id", suffix="_known")
    is_same = pl.col(PROMPT_HASH) == pl.col(f"{PROMPT_HASH}_known")  # null where either has none
    pairs = both.select(PROMPT_SETTINGS, f"{PROMPT_SETTINGS}_known").unique(maintain_order=True)
    found = [_Pair(*row) for row in pairs.iter_rows()]
    pairs = pairs.with_columns(
        apart=pl.Series([one.apart for one in found], dtype=pl.Boolean),
        templates=pl.Series([one.templates for one in found], dtype=pl.Boolean),
        place=pl.int_range(pl.len()),
    )
    both = both.join(pairs, on=pairs.columns[:2], nulls_equal=True)
    is_other = (~is_same & ~pl.col("templates")).fill_null(value=False)
    other = both.filter(is_other | (pl.col("apart") & ~is_same.fill_null(value=False)))
    if not other.height:
        return ""
    explained = [found[place] for place in other["place"].to_list() if found[place].apart]
    how = f"{len(other)} of {both.height} items"
    if explained:
        no_prompts = {JUDGE: "judges", HIGHEST: "scales", ROLES: "model roles", "scorer_args": "scorer arguments"}
        names = {name for one in explained for name in one.names}
        what = no_prompts.get(next(iter(names)), "prompts") if len(names) == 1 else "prompts"
        ways = Counter(one.in_words(whose) for one in explained).most_common()
        words = [f"{text} ({plural(n, 'item')})" for text, n in ways[:N_SHOWN]] if len(ways) > 1 else [ways[0][0]]
        more = [f"and {plural(len(ways) - N_SHOWN, 'more way')}"] if len(ways) > N_SHOWN else []
        return f"{what} differ for {how}: {'; '.join([*words, *more])}"
    examples = shown(other["item_id"].to_list())
    return f"prompts differ for {how}, although the settings that are known are the same: {examples}"


MAY_CHANGE: Final = "The prompts are the same, but metrics and filters may have changed with the version."


def warn_of_versions(items: pl.DataFrame, known: pl.DataFrame, *, whose: str = "the bank's runs") -> None:
    """Warn where items have the prompts of the known items of the same ids, but another version of their task."""
    both = _told(items).join(_told(known), on="item_id", suffix="_known")
    pairs = both.group_by(PROMPT_SETTINGS, f"{PROMPT_SETTINGS}_known", maintain_order=True).len()
    found = [(n, _Pair(*texts)) for *texts, n in pairs.sort("len", descending=True, maintain_order=True).iter_rows()]
    other = [(n, one) for n, one in found if VERSION in one.names]
    if other:
        had, have = other[0][1].known[VERSION], other[0][1].settings[VERSION]
        warn(
            f"task versions differ for {sum(n for n, _ in other)} of {both.height} items: {whose} had task version "
            f"{had}, these have task version {have}. {MAY_CHANGE}",
            DataWarning,
        )


def how_to_mix() -> str:
    """Say how models that were asked with different prompts are taken together."""
    allow = remedy("spec=ReadingSpec(allow_mixed_prompts=True)", "--allow-mixed-prompts")
    return f"To take them together anyway, add {allow}."


def join_prompts(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return how items were asked in several item tables together: what differs is `DIFFERS`."""
    columns = [name for name in PROMPTS if any(name in one.columns for one in tables)]
    told = pl.concat([_told(one).select("item_id", *columns) for one in tables])
    known = [pl.col(name).drop_nulls().unique(maintain_order=True) for name in columns]
    joined = told.group_by("item_id", maintain_order=True).agg(known)
    if PROMPT_HASH in columns:
        hashes = pl.col(PROMPT_HASH).list
        one = pl.when(hashes.len() > 1).then(pl.lit(DIFFERS)).otherwise(hashes.first())
        joined = joined.with_columns(one.alias(PROMPT_HASH))
    if PROMPT_SETTINGS in columns:
        texts = pl.col(PROMPT_SETTINGS).list.join("\n")  # JSON on one line each
        found = joined.select(texts.unique()).to_series().to_list()
        together = [settings_text(joined_settings(map(_settings_of, text.split("\n")))) for text in found]
        joined = joined.with_columns(texts.replace_strict(found, together, return_dtype=pl.String))
    return joined


def with_prompts(items: pl.DataFrame, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return a table of items that says how they were asked in all these tables together."""
    joined = join_prompts(tables)
    if joined.width == 1:
        return items
    return items.drop(joined.columns[1:], strict=False).join(joined, on="item_id", how="left", maintain_order="left")


class _Pair:
    """Settings of an item and of the known one, compared."""

    def __init__(self, settings: str | None, known: str | None) -> None:
        self.settings, self.known = _settings_of(settings), _settings_of(known)
        self.names = settings_apart(self.settings, self.known)
        self.apart = bool(self.names)
        self.templates = self.settings.get("chat_template") is True and self.known.get("chat_template") is True

    def in_words(self, whose: str) -> str:
        """Say what each had of the settings that differ."""
        pairs = [(name, *_unlike(self.settings[name], self.known[name])) for name in self.names]
        ours = " and ".join(_in_words(name, one) for name, one, _ in pairs)
        theirs = " and ".join(_in_words(name, other) for name, _, other in pairs)
        return f"{whose} had {theirs}, these have {ours}"


def _unlike(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two values that differ, of objects only the entries that do."""
    ours, theirs = _entries(one), _entries(other)
    if not (ours and theirs):
        return one, other
    names = [name for name in ours if name in theirs and _is_apart(ours[name], theirs[name])]
    return entries_text({name: ours[name] for name in names}), entries_text({name: theirs[name] for name in names})


def _settings_of(text: str | None) -> dict[str, Any]:
    """Return settings from their text; none where it is no object."""
    try:
        content = json.loads(text or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _told(items: pl.DataFrame) -> pl.DataFrame:
    """Return the ids of items, the digits of hashes that are kept, and settings; null where there are none."""
    absent = pl.lit(None, dtype=pl.String)
    told = {name: pl.col(name).cast(pl.String) if name in items.columns else absent for name in PROMPTS}
    told[PROMPT_HASH] = told[PROMPT_HASH].str.slice(0, N_DIGITS)
    return items.select("item_id", **told)


def _hashed(items: pl.DataFrame) -> pl.DataFrame:
    """Return how items were asked, with the hashes that are of all models alone."""
    return _told(items).with_columns(pl.when(pl.col(PROMPT_HASH) != DIFFERS).then(PROMPT_HASH).alias(PROMPT_HASH))
