"""Trials of agents: several at a task, some without a verdict, each with what it cost."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from itembank.errors import DataError, DataWarning, first_few, remedy, shown, warn
from itembank.progress import ProgressCallback
from itembank.readers.collecting import own_files, read_each
from itembank.readers.json_files import Record, as_float
from itembank.readers.long_table import rows_of_records
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec, how
from itembank.readers.rows import ResponseRows, content_digest, join_rows, rename_model
from itembank.responses.error_kinds import error_kind
from itembank.responses.prompts import HIGHEST, PROMPT_SETTINGS, settings_text
from itembank.tables import plural

ROUNDING = 1e-6
"""How far a reward of none or all may be from it, as the first tau-bench has it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial of a model at an item."""

    item_id: str
    reward: float | None  # From 0 to the most that there can be; None where there is no verdict
    error: str = ""  # What it ended in, where there is no verdict
    name: str = ""  # By which it is told from the others
    costs: Mapping[str, Any] = field(default_factory=dict)  # By unit; what is no number is not known
    content: str | None = None  # Digest of the task
    metric: str | None = None  # Which of several rewards it is, where one was asked for


def item_of(domain: str, task: Any) -> str:
    """Id of a task of a domain, or of none; `ValueError` where the task has no name."""
    return f"{domain}/{name_of(task, 'task')}" if domain else name_of(task, "task")


def name_of(told: Any, what: str) -> str:
    """Name of a trial's task, agent or model; `ValueError` where there is none."""
    if told is None or told == "":
        raise ValueError(f"a trial must name its {what}")
    return str(told)


def reward_of(told: Any) -> float | None:
    """Reward of a trial; None where there is none, or no number (NaN)."""
    reward = math.nan if told is None else float(told)
    return None if math.isnan(reward) else reward


def _records(model_id: str, scenario: str | None, trials: Sequence[Trial], most: float, run: str) -> Iterator[Record]:
    """Give records of a long table: trials of a task are counted where every reward is none or all, else each is one.

    `run` tells them from trials of the same model in another run, and from no copy of this one.
    """
    are_counts = all(one.reward in {None, 0.0, most} for one in trials)
    by_item: dict[str, list[Trial]] = {}
    for one in trials:
        by_item.setdefault(one.item_id, []).append(one)
    for item_id, own in by_item.items():
        for number, group in enumerate([own] if are_counts else [[one] for one in own]):
            known = [one.reward for one in group if one.reward is not None]
            failed = [one.error or "no verdict" for one in group if one.reward is None]
            yield {
                "model_id": model_id,
                "item_id": item_id,
                "scenario": scenario,
                "response": sum(known) / len(known) / most if known else None,
                "n_trials": len(known) or None,
                "n_errors": len(failed),
                "error": next(iter(failed), None)
                if len({*map(error_kind, failed)}) < 2
                else "error",  # of several kinds
                "epoch": run if are_counts else f"{run} {group[0].name} {number}",
                **{unit: mean_cost([one.costs.get(unit) for one in group]) for unit in COST_COLUMNS},
                "content_hash": next((one.content for one in group if one.content), None),
            }


def rows_of_trials(
    source: str,
    about: Mapping[str, Any],  # The line of the model table
    scenario: str | None,
    trials: Sequence[Trial],
    spec: ReadingSpec,
    *,
    settings: Mapping[str, Any],  # How it was asked, as `itembank.responses.prompts` names it
    run: str = "",  # Its name, where it has one that a copy keeps
) -> ResponseRows:
    """Make rows of the trials of one model at the tasks of one scenario."""
    most = spec.max_response
    trials = [replace(one, reward=_without_rounding(one.reward, most)) for one in trials]
    rewards = [one.reward for one in trials if one.reward is not None]
    outside = [one for one in trials if one.reward is not None and not 0.0 <= one.reward <= most]
    if outside:
        way = "Rewards below 0 need another scale: make it by a program of jq (see docs/data.md)."
        if min(rewards) >= 0.0:
            way = f"To divide by the most that there can be, add: {how(max_response=max(rewards))}"
        more = f" and others for {plural(len(outside) - 1, 'more trial')}" if len(outside) > 1 else ""
        raise DataError(
            f"{source}: rewards must be from 0 to {most:g}, got {outside[0].reward:g} for task {outside[0].item_id!r}"
            f"{more}. {way}"
        )
    run = run or content_digest([[one.item_id, one.reward, one.error, one.name, one.costs] for one in trials])[:8]
    scenario = spec.scenario or scenario
    if spec.prefix_scenario and scenario:
        trials = [replace(one, item_id=item_of(scenario, one.item_id)) for one in trials]
    told = sorted({(one.item_id, one.content) for one in trials if one.content})
    changed = list(dict.fromkeys(one for (one, _), (other, _) in pairwise(told) if one == other))
    if changed:
        raise DataError(
            f"{source}: a task must ask the same in all its trials, got another content for "
            f"{plural(len(changed), 'task')}: {shown(changed)}. The tasks changed between the runs, or their ids start "
            "anew in each part: read those apart."
        )
    records = [*_records(str(about["model_id"]), scenario, trials, most, run)]
    rows = rows_of_records(source, records, spec, models=[about])
    about_items = [pl.lit(settings_text({**settings, HIGHEST: f"{most:g}"})).alias(PROMPT_SETTINGS)]
    metrics = {one.item_id: one.metric for one in trials if one.metric}
    if metrics:
        about_items.append(pl.col("item_id").replace_strict(metrics, default=None).alias("metric"))
    return replace(rows, items=rows.items.with_columns(about_items))


Agent: TypeAlias = tuple[str, str | None, Path]
"""Its name, its arguments, and where its trials are."""


def rows_of_agents(
    source: str,
    paths: Sequence[Path],
    read: Callable[[Path], tuple[Agent, ResponseRows]],  # The agent and the rows of a file
    spec: ReadingSpec,
    progress: ProgressCallback,
) -> ResponseRows:
    """Read the files of one program, each of which has the trials of one agent."""
    found = read_each(own_files(paths, source, spec), read, progress, spec)
    named = [((agent_id(name, arguments, spec), arguments, place), rows) for (name, arguments, place), rows in found]
    check_agents([agent for agent, _ in named], spec)
    parts = [rename_model(rows, agent[0]) if spec.model_id_from == "args" else rows for agent, rows in named]
    return join_rows(parts, allow_mixed_prompts=spec.allow_mixed_prompts)


def agent_id(name: str, arguments: str | None, spec: ReadingSpec) -> str:
    """Id of an agent: its name, with its arguments where these are to tell agents apart."""
    return f"{name} {arguments}" if arguments and spec.model_id_from == "args" else name


def check_agents(agents: Iterable[Agent], spec: ReadingSpec | None = None) -> None:
    """Refuse agents of one name whose arguments differ: they are different models, which `spec` may tell apart."""
    found: dict[str, dict[str, Path]] = {}
    for name, arguments, place in agents:
        found.setdefault(name, {}).setdefault(arguments or "none", place)
    problems = [
        f"{name!r} ran with {' and with '.join(f'{arguments} in {place}' for arguments, place in own.items())}"
        for name, own in found.items()
        if len(own) > 1
    ]
    if problems:
        apart = remedy("read_responses(path, spec=ReadingSpec(model_id='...'))", "itembank import PATH --model-id NAME")
        args = remedy("model_id_from='args'", "model_id_from = 'args' in the file of --spec")
        both = f"Put the arguments into their names: {args}. Or read" if spec is not None else "Read"
        raise DataError(
            f"an agent must have run with the same arguments in all its trials: {first_few(problems)}. {both} such "
            f"results apart, each under a name of its own: {apart}."
        )


def _without_rounding(reward: float | None, most: float) -> float | None:
    """Return a reward, none or all where a sum of weights missed that by rounding."""
    return next((one for one in (0.0, most) if reward is not None and abs(reward - one) < ROUNDING), reward)


def tell_of_own_means(
    what: str,
    whose: str,  # "Harbor's means count"
    kinds: Counter[str],  # How many have no verdict, by what they ended in
    means: Sequence[tuple[str, float, float]],  # Whose it is, the source's own mean, and that of what has a verdict
    spec: ReadingSpec,
) -> None:
    """Warn that a source counts what has no verdict as 0, and name both means where they differ; not if all do so."""
    pairs = [(name, f"{100.0 * theirs:.1f}", f"{100.0 * ours:.1f}") for name, theirs, ours in means]
    both = [f"{name} {theirs} in place of {ours}" for name, theirs, ours in pairs if theirs != ours]
    if both and spec.errors != "wrong":
        why, wrong = (
            ", ".join(f"{n} {one}" for one, n in kinds.most_common()),
            remedy("errors='wrong'", "--errors wrong"),
        )
        warn(
            f"{kinds.total()} {what} have no verdict ({why}) and are lost answers. {whose} them as 0, in points: "
            f"{first_few(both)}. To count them so: {wrong}.",
            DataWarning,
        )


def seconds_between(started: Any, finished: Any) -> float | None:
    """Time from one moment to another, as ISO 8601 writes them; None where it is not told."""
    try:
        return (datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds()
    except (TypeError, ValueError):
        return None


def mean_cost(amounts: Sequence[Any]) -> float | None:
    """Average what is known of some costs; what is no number, infinite or below 0 is not known."""
    known = [as_float(one) for one in amounts if isinstance(one, int | float) and not isinstance(one, bool)]
    known = [one for one in known if 0.0 <= one < math.inf]
    return sum(known) / len(known) if known else None
