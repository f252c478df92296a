"""Tasks of Inspect that run chosen samples of another task, with their feed, checks of prompts, scorer and metric."""

import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import click
import polars as pl
from inspect_ai import SampleSource, Task, task, task_with
from inspect_ai._cli.util import parse_cli_args
from inspect_ai._eval.loader import load_tasks, resolve_task_args, solver_from_spec
from inspect_ai._eval.task.constants import TASK_ALL_PARAMS_ATTR
from inspect_ai._eval.task.log import plan_to_eval_plan
from inspect_ai._eval.task.run import resolve_plan
from inspect_ai._util.json import to_json_safe
from inspect_ai._util.registry import registry_info
from inspect_ai.dataset import MemoryDataset
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.scorer._scorer import SCORER_METRICS, scorer_register
from inspect_ai.solver import SolverSpec, TaskState

from itembank.bank.bank_places import is_bank_name
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError, shown
from itembank.files.documents import RECORD_KEY, with_digest
from itembank.gating.running import GateRun
from itembank.gating.stages import GatePlan
from itembank.readers.matching import AUTO
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.error_kinds import Errors
from itembank.responses.prompts import PROMPT_SETTINGS, settings_text
from itembank.responses.score_names import OVERALL
from itembank.sessions.answers import tell_all
from itembank.sessions.asking import Asking
from itembank.sessions.limits import Budget, Stopping
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_harnesses.inspect.samples import (
    MODEL,
    TaskItems,
    answer_of,
    estimated_metrics,
    known_bank,
    known_pool,
    logged_sample,
    response_of,
    samples_by_item,
    task_items,
)
from itembank_harnesses.readers.inspect_runs import LogFile, run_of
from itembank_harnesses.readers.inspect_samples import OWN_SCORER, Sample, choose_scorer, flat_scores, score_value
from itembank_harnesses.running import check_gate, compare_prompts

ADVICE = (
    "Give the arguments of the task (--task-arg NAME=VALUE), the solver and the system message that the bank's runs "
    "had. The bank knows a digest of long texts only."
)
BATCH = 8


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The task that is to be run, the bank, and the items that they share."""

    inner: Task
    known: TaskItems
    bank: Bank
    place: str  # Where the bank lies
    scorer: str | None  # Whose scores are the responses
    match: str  # How the items are found among the samples

    @classmethod
    def of(
        cls,
        name: str,
        arguments: Mapping[str, Any] | None,
        bank: str,
        scorer: str | None,
        *,
        match: str,
        ignore_prompts: bool,
    ) -> Self:
        """Load the task, find its items in the bank, and compare its arguments with those of the bank's runs."""
        # Inspect takes no absolute path that has no @NAME.
        name = os.path.relpath(name) if Path(name).is_absolute() and "@" not in name else name
        found = load_tasks([name], dict(arguments or {}))
        if len(found) != 1:
            raise DataError(
                f"task must name one task, got {len(found)} for {name!r}: {shown([one.name for one in found])}. Write "
                "FILE@NAME, or PACKAGE/NAME."
            )
        if not found[0].scorer:
            raise DataError(f"the task {name!r} must have a scorer, got none.")
        place = _place(bank)
        loaded = known_bank(place, "")
        known = task_items(loaded, found[0].name)
        check_prompts(loaded, known, arguments_told(found[0]), is_ignored=ignore_prompts)
        return cls(found[0], known, loaded, place, scorer or known.scorer, match)

    def samples(self, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the samples of these items, by default of all that the task shares with the bank."""
        wanted = list(self.known.items.values()) if wanted is None else wanted
        return samples_by_item(self.bank, self.known, self.inner.dataset, wanted, self.match)

    def with_samples(self, dataset: Any, about: Mapping[str, Any], *scorers: Scorer) -> Task:
        """Return the task with other samples, with more scorers, and with what they are in its metadata."""
        ours = {"task": self.known.task, "bank": self.bank.bank_id, "n_items_full": len(self.known.items), **about}
        metadata = {**(self.inner.metadata or {}), OWN_SCORER: ours}
        return task_with(self.inner, dataset=dataset, scorer=[*self.inner.scorer, *scorers], metadata=metadata)

    def with_estimate(self, dataset: Any, about: Mapping[str, Any], **chosen: str) -> Task:
        """Return the task with other samples, and with the scorer whose metric is the estimate."""
        bank_id = self.bank.bank_id
        own = estimating(bank=self.place, task=self.known.task, scorer_name=self.scorer, bank_id=bank_id, **chosen)
        return self.with_samples(dataset, about, own)


class Feed:
    """Gives Inspect the samples that a session, or a gate, asks for, and keeps what is known then in `trace`.

    Inspect asks for further samples when none is in flight. Only then answers are looked at, in the order in which the
    items were asked, so that nothing depends on the order in which samples were completed. A retry begins anew, asks
    the same items again and finds them answered in the log.
    """

    def __init__(
        self, loaded: _Loaded, session: Asking, batch: int, known_now: Callable[[Any], dict[str, float]]
    ) -> None:
        self._loaded, self._samples = loaded, loaded.samples()
        self._items = {str(sample.id): item_id for item_id, sample in self._samples.items()}
        self._epochs: dict[str, list[Sample]] = defaultdict(list)
        self._session, self._batch, self._known_now = session, batch, known_now
        self.trace: list[dict[str, float]] = []

    @property
    def source(self) -> SampleSource:
        """What Inspect takes samples from."""
        return SampleSource.from_samples(self._asked(), next_samples=self._next, sample_complete=self._complete)

    def _asked(self) -> list[Any]:
        return [self._samples[item_id] for item_id in self._session.ask(self._batch)]

    async def _next(self) -> list[Any] | None:
        """Tell the session the outcome of every item that it waits for; one that was cancelled before it ran failed."""
        pending = self._session.pending
        for item_id in pending:
            epochs = sorted(self._epochs.pop(item_id, []), key=lambda one: one.epoch)
            responses = [response_of(one, self._loaded.known.task, self._loaded.scorer) for one in epochs]
            tell_all(self._session, [answer_of(item_id, epochs, responses)])
        if pending:
            self.trace.append(self._known_now(self._session))
        return self._asked() or None

    async def _complete(self, sample: Any) -> None:
        """Take a sample that was run, in one of its epochs, or taken over from an earlier attempt."""
        logged = logged_sample(sample)
        self._epochs[self._items[str(logged.id)]].append(logged)


def estimate_now(session: AdaptiveSession) -> dict[str, float]:
    """Return the estimate of a session's main target, and the ability."""
    estimate = session.estimate()
    row = next(row for row in estimate.scores.rows() if row["target"] == estimate.scores.main_target)
    abilities = {f"ability_{number}": value for number, value in enumerate(estimate.theta.tolist(), 1)}
    return {"n_items": session.n_items, **{name: row[name] for name in ("estimate", "low", "high")}, **abilities}


def difference_now(run: GateRun) -> dict[str, float]:
    """Return what the last look of a gate found; only the number of items before the first."""
    look = None if run.found is None else run.found.last
    known = {} if look is None else {"difference": look.difference, "low": look.low, "high": look.high}
    return {"n_items": run.n_items, **known}


def check_prompts(
    bank: Bank,
    known: TaskItems,
    settings: Mapping[str, Any],  # As `itembank.responses.prompts` names them
    *,
    is_ignored: bool = False,  # Say that they differ, and go on
) -> None:
    """Compare how a task asks with how past models were asked; no model has been called yet."""
    ids = pl.Series("item_id", list(known.items.values()), dtype=pl.String)
    asked = ids.to_frame().with_columns(pl.lit(settings_text(settings), dtype=pl.String).alias(PROMPT_SETTINGS))
    compare_prompts(asked, bank.responses.items, advice=ADVICE, is_ignored=is_ignored)


def arguments_told(task: Task) -> dict[str, Any]:
    """Return version and arguments of a task, which no option of Inspect's command can change."""
    return {name: value for name, value in _told(task).items() if name in {"version", "task_args"}}


def solvers_told(task: Task, arguments: Sequence[str]) -> dict[str, Any]:
    """Return solvers, system prompts and model roles of a task that is run with these arguments of Inspect's command.

    They are unknown where a file says them.
    """
    names = ("--solver", "--solver-config", "--run-config", "--generate-config", "--system-message")
    command = click.Command(
        "eval",
        params=[
            *(click.Option([name]) for name in names),
            click.Option(["-S", "solver_args"], multiple=True),
            click.Option(["--model-role"], multiple=True, envvar="INSPECT_EVAL_MODEL_ROLE"),
        ],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )
    given = command.make_context("eval", list(arguments)).params
    if given["solver_config"] or given["run_config"] or given["generate_config"]:
        return {}
    config = {} if given["system_message"] is None else {"system_message": given["system_message"]}
    solver = None
    if given["solver"] is not None:
        values: dict[str, Any] = {}
        for name, _, value in (pair.partition("=") for pair in given["solver_args"]):
            try:
                values[name] = json.loads(value)
            except ValueError:
                values[name] = value
        solver = solver_from_spec(SolverSpec(given["solver"], values))
    roles = {**(task.model_roles or {}), **parse_cli_args(given["model_role"])}
    named = {role: one if isinstance(one, dict) else str(one) for role, one in roles.items()}
    told = _told(task, {"model_generate_config": config, "model_roles": named}, solver)
    return {name: value for name, value in told.items() if name not in {"version", "task_args"}}


def _told(task: Task, about: Mapping[str, Any] | None = None, solver: Any = None) -> dict[str, Any]:
    """Return the settings that the reader of logs would find in the log of a task."""
    about = about or {}
    arguments = getattr(task, TASK_ALL_PARAMS_ATTR, resolve_task_args(task))
    release = {"inspect_ai": version("inspect_ai")}
    own = {"task": "task", "model": "none", "task_version": task.version, "task_args": arguments, "packages": release}
    plan = plan_to_eval_plan(resolve_plan(task, solver), task.config)
    header = json.loads(to_json_safe({"eval": {**own, **about}, "plan": plan}))  # as Inspect writes logs
    header["plan"]["config"] = {**(header["plan"].get("config") or {}), **about.get("model_generate_config", {})}
    return dict(run_of(LogFile(Path("task"), header, []), ReadingSpec()).run.settings["task"])


def _of_itembank(function: Any) -> Any:
    """Let Inspect name what it registers after the package that is installed, by which it looks for entry points."""
    function.__module__ = "itembank"
    return function


@metric(name="full_benchmark", scores="unreduced")
@_of_itembank
def full_benchmark(bank: str, task: str, *, bank_id: str = "", session: str = "", selection: str = "") -> Metric:
    """Estimate the score on the full benchmark; the arguments are those of `estimated_metrics`.

    It depends on them and on the samples' ids and scores alone, so that it holds in retries and in `inspect score`.
    """

    def estimated(scores: list[SampleScore]) -> dict[str, float]:
        values = [(one.sample_id, one.score.as_float()) for one in scores]
        return estimated_metrics(values, bank=bank, task=task, bank_id=bank_id, session=session, selection=selection)

    return estimated


@scorer(metrics=[], name=OWN_SCORER)
@_of_itembank
def _copied(bank: str, task: str, scorer_name: str | None = None, **_known: str) -> Scorer:  # noqa: ARG001 (for logs)
    """Give the score of another scorer of the task as a number."""

    async def score(state: TaskState, _target: Target) -> Score:
        found = flat_scores({name: one.model_dump() for name, one in (state.scores or {}).items()})
        if not found:
            return Score(value=math.nan)
        name = choose_scorer(task, list(found), [scorer_name] if scorer_name else [], [])
        return Score(value=score_value(found[name]), metadata={"scorer": name})

    return score


def estimating(
    bank: str,
    task: str,
    scorer_name: str | None = None,  # Whose scores are the responses; the task's first scorer by default
    **known: str,  # Further arguments of `full_benchmark`
) -> Scorer:
    """Make the scorer whose metric is the estimate."""
    made = _copied(bank, task, scorer_name, **known)
    # Inspect's decorator knows no metrics that depend on the scorer's own arguments.
    registry_info(made).metadata[SCORER_METRICS] = [full_benchmark(bank=bank, task=task, **known)]
    return made


scorer_register(estimating, registry_info(_copied).name, {SCORER_METRICS: []})


@task
@_of_itembank
def adaptive(
    task: str,
    bank: str,
    *,
    half_width: float | None = None,
    max_items: int | None = None,
    batch: int = BATCH,
    seed: int = 0,
    scorer: str | None = None,
    session: dict[str, Any] | None = None,
    task_args: dict[str, Any] | None = None,
    match: str = AUTO,
    ignore_prompts: bool = False,
) -> Task:
    """Ask a model the samples of a task one batch after the other, until the score is known well enough.

    Parameters
    ----------
    task : str
        Name or file of the task, as `inspect eval` takes it.
    bank : str
        Path of the bank.
    half_width : float, optional
        Stop when the 95 % interval of the score is as narrow as ± this. The score is the task's, or the overall score
        of a bank of one task.
    max_items : int, optional
        Samples at most.
    batch : int
        Samples asked at once.
    seed : int
    scorer : str, optional
        Whose scores are the responses; by default the one that the bank was made with.
    session : dict, optional
        Every choice of a session, instead of `half_width`, `max_items` and `seed`: `SessionSpec.to_dict`.
    task_args : dict, optional
        Arguments of the task.
    match : str
        How the bank's items are found among the samples: by their ids, 'hash', or 'doc.FIELD', a field of the metadata.
    ignore_prompts : bool
        Run also where these, or the task's version, are others than in the bank's runs.
    """
    loaded = _Loaded.of(task, task_args, bank, scorer, match=match, ignore_prompts=ignore_prompts)
    known = loaded.known
    if session is not None:
        spec = SessionSpec.from_dict(session)
    elif half_width is None and max_items is None:
        raise ParameterError("half_width or max_items must be given: when is the run to stop?")
    else:
        target = known.scenarios[0] if known.others and len(known.scenarios) == 1 else OVERALL
        stopping = Stopping(half_width={} if half_width is None else {target: half_width})
        spec = SessionSpec(target=target, budget=Budget(max_items), stopping=stopping, seed=seed)
    text = json.dumps(spec.to_dict(), sort_keys=True)
    asking = AdaptiveSession(known_pool(loaded.place, "", known.task, text), model_id=MODEL)
    feed = Feed(loaded, asking, batch, estimate_now)
    return loaded.with_estimate(feed.source, {"session": spec.to_dict(), "trace": feed.trace}, session=text)


@task
@_of_itembank
def gated(
    task: str,
    bank: str,
    gate: str,
    *,
    errors: Errors | None = None,
    scorer: str | None = None,
    task_args: dict[str, Any] | None = None,
    match: str = AUTO,
    ignore_prompts: bool = False,
) -> Task:
    """Ask a model the samples of a gate, one stage after the other, until there is a verdict.

    Parameters
    ----------
    task, bank, scorer, task_args, match, ignore_prompts
        As of `adaptive`.
    gate : str
        Folder of the gate (`itembank gate start`).
    errors : {'missing', 'wrong', 'bounds'}, optional
        What samples count as that ended in an error; by default as the gate says.
    """
    loaded = _Loaded.of(task, task_args, bank, scorer, match=match, ignore_prompts=ignore_prompts)
    plan = GatePlan.load(gate).with_errors(errors)
    check_gate(plan, loaded.bank, set(loaded.known.items.values()), is_ignored=ignore_prompts)
    feed = Feed(loaded, GateRun(plan, model_id=MODEL, bank=loaded.bank), len(plan.order), difference_now)
    return loaded.with_samples(feed.source, {"gate": gate, "trace": feed.trace})


@task
@_of_itembank
def subset(
    task: str,
    bank: str,
    selection: str,
    *,
    scorer: str | None = None,
    task_args: dict[str, Any] | None = None,
    match: str = AUTO,
    ignore_prompts: bool = False,
) -> Task:
    """Ask a model the samples of a task that a selection holds.

    Parameters
    ----------
    task, bank, scorer, task_args, match, ignore_prompts
        As of `adaptive`.
    selection : str
        File of the selection (`itembank select`).
    """
    loaded = _Loaded.of(task, task_args, bank, scorer, match=match, ignore_prompts=ignore_prompts)
    chosen = Selection.load(selection)
    known_ids = set(loaded.bank.responses.item_ids)
    foreign = [item_id for item_id in chosen.item_ids if item_id not in known_ids]
    if foreign:
        raise DataError(
            f"every item of the selection must be in the bank, got {len(foreign)} that are not: {shown(foreign)}."
        )
    wanted = [item_id for item_id in chosen.item_ids if item_id in set(loaded.known.items.values())]
    if not wanted:
        raise DataError(f"the selection must hold items of the task {loaded.known.task!r}, got none: {selection}.")
    every = loaded.inner.dataset
    dataset = MemoryDataset(list(loaded.samples(wanted).values()), name=every.name, location=every.location)
    digest = with_digest(chosen.to_dict())[RECORD_KEY]
    about = {"selection": selection, "selection_digest": digest, "n_items": len(wanted)}
    return loaded.with_estimate(dataset, about, selection=_place(selection))


def _place(path: str) -> str:
    """Return a path, or a bank's name, that holds wherever the log is read."""
    return path if is_bank_name(path) else str(Path(path).resolve())
