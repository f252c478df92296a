"""Runs of Harbor's own command: chosen tasks as jobs, what they would cost, and the answers that jobs hold.

Harbor goes on with a job under an equal configuration alone, and takes trials that were cancelled for done. So a job is
never gone on with: trials that lack are run in a new one, and all jobs of a folder are read together.
"""

import contextlib
import json
import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_positive, check_whole
from itembank.errors import (
    DataError,
    DataWarning,
    MissingDependencyError,
    ParameterError,
    RunError,
    remedy,
    shown,
    unsaid,
)
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates
from itembank.files.atomic import write_text
from itembank.files.documents import read_json
from itembank.harnesses.drive import AfterAnswer, take_answer
from itembank.harnesses.id_forms import id_text
from itembank.readers.agreement import check_same_content, check_same_prompts, only_items, spec_like
from itembank.readers.json_files import listed, mapping
from itembank.readers.read import read_matrix
from itembank.readers.reading_specs import COST_COLUMNS, ReadingSpec
from itembank.responses.how_read import HowRead
from itembank.responses.prompts import DIFFERS, HIGHEST, PROMPT_SETTINGS, settings_by_task, settings_text
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.answers import answer
from itembank.sessions.asking import Asking
from itembank.sessions.events import Answer
from itembank.spreadsheets import is_number
from itembank_harnesses.readers.harbor import JobTrial, read_trial, time_limits
from itembank_harnesses.readers.trials import mean_cost
from itembank_harnesses.running import alone_in, call_program, compare_prompts, usual_costs

PROGRAM: Final = "harbor"
KEPT: Final = "run.json"
"""Of the folder of a run: what all of its jobs must have in common."""
PATIENCE: Final = 60.0
"""Seconds for Harbor to stop its containers after Ctrl-C."""
OWNED: Final = (
    *("-c", "--config", "--job-name", "-o", "--jobs-dir", "-k", "--n-attempts", "-d", "--dataset", "-p", "--path"),
    *("-t", "--task", "--task-name", "-i", "--include-task-name", "-x", "--exclude-task-name", "-l", "--n-tasks"),
    *("--registry-url", "--registry-path", "--task-git-url", "--task-git-commit", "--disable-verification"),
)
"""Options of `harbor run` that a run of ours decides."""
AGENT: Final = ("-a", "--agent", "--agent-import-path")
MODEL: Final = ("-m", "--model")
ADVICE: Final = "Take the version of the data set, and the time limits, of the bank's runs."


@dataclass(frozen=True, slots=True)
class HarborRun:
    """A run of tasks of one data set by one agent."""

    bank: Bank
    job: Mapping[str, Any]  # Configuration of a job, as Harbor has it, without tasks
    folder: Path  # Of the jobs
    arguments: tuple[str, ...]  # Further arguments of `harbor run`
    n_attempts: int  # At each task
    spec: ReadingSpec  # Which reward counts, what lost trials count as, and whether prompts may differ

    @classmethod
    def of(
        cls,
        bank: Bank,
        data_set: str,
        folder: Path,
        arguments: Sequence[str],
        *,
        n_attempts: int | None = None,
        spec: ReadingSpec,
    ) -> Self:
        """Check what `harbor run` is called with, and compare it with the bank's runs; nothing is run."""
        given = [one for name in OWNED for one in arguments if _is(name, one)]
        if given:
            raise ParameterError(
                f"arguments of harbor must not hold {shown(given)}: itembank sets which tasks are run, how often "
                "(--attempts), and where jobs go (-o)."
            )
        job = read_job(data_set)
        n_attempts = n_attempts or job.get("n_attempts", 1)
        check_whole("n_attempts", n_attempts, least=1)
        errors = spec.errors or HowRead(bank.responses.items).lost_as
        most = {one[HIGHEST] for one in settings_by_task(bank.responses.items).values() if HIGHEST in one} - {DIFFERS}
        highest = float(most.pop()) if len(most) == 1 else spec.max_response
        how: dict[str, Any] = {"format": "harbor", "repeats": "mean", "skip_unusable": True}
        spec = replace(spec, **how, errors=errors, max_response=highest)
        run = cls(bank, job, folder, tuple(arguments), n_attempts, spec)
        if not run._agent or (_values(arguments, MODEL) and not _values(arguments, AGENT)):
            raise ParameterError("arguments of harbor must name an agent beside its model, -- -a NAME -m MODEL.")
        settings = settings_text({"version": run.data_set.get("version"), "timeouts": run._limits})
        asked = bank.responses.items.select("item_id").with_columns(
            pl.lit(settings, dtype=pl.String).alias(PROMPT_SETTINGS)
        )
        compare_prompts(asked, bank.responses.items, advice=ADVICE, is_ignored=spec.allow_mixed_prompts)
        return run

    @property
    def data_set(self) -> Mapping[str, Any]:
        """The data set, as a job has it."""
        return mapping(self.job["datasets"][0])

    @property
    def item_ids(self) -> list[str]:
        """Items of the data set in the bank's order; all of them, unless a scenario has its name."""
        items = self.bank.responses.items
        name = self.data_set.get("name") or Path(self.data_set["path"]).name
        own = items.filter(pl.col("scenario") == name)
        return (own if own.height else items)["item_id"].to_list()

    @property
    def model_id(self) -> str:
        """Agent and language model, as far as they are told before the run."""
        return "+".join(filter(None, (self._agent, self._told("model_name", MODEL))))

    @property
    def _agent(self) -> str:
        return self._told("name", AGENT) or self._told("import_path", AGENT)

    def _told(self, field: str, options: Sequence[str]) -> str:
        """Return what the arguments, or the configuration, say of the agent; several are refused."""
        agents = [str(mapping(one).get(field) or "") for one in listed(self.job.get("agents"))]
        found = _values(self.arguments, options) or agents
        if len(found) > 1:
            raise ParameterError(f"a run must have one agent and one model, got {shown(found)}. Run each by itself.")
        return found[0] if found else ""

    @property
    def _limits(self) -> str | None:
        """Time limits, as the reader of trials tells them."""
        kinds = ("timeout", "agent_timeout", "verifier_timeout", "agent_setup_timeout", "environment_build_timeout")
        limits = {"timeout_multiplier": 1.0, **self.job}
        for name in (f"{kind}_multiplier" for kind in kinds):
            for told in _values(self.arguments, [f"--{name.replace('_', '-')}"]):
                limits[name] = float(told) if is_number(told) else told
            if limits.get(name) is not None:
                check_positive(name, limits[name])
        return time_limits(limits)

    def expected_costs(self, item_ids: Sequence[str], n_items: int) -> dict[str, float]:
        """Return what so many of these items would cost, by each unit that the bank records: all attempts together."""
        usual = usual_costs(self.bank, item_ids, n_items)
        return {unit: self.n_attempts * cost for unit, cost in usual.items()}

    def check(self) -> None:
        """Refuse a run without Harbor, or in a folder of another run; keep what this one is."""
        if shutil.which(PROGRAM) is None:
            raise MissingDependencyError(
                "runs by Harbor need its command harbor on the PATH, got none: pip install harbor. Jobs can be read "
                "without it: itembank estimate."
            )
        kept = self.folder / KEPT
        text = json.dumps({"datasets": self.job["datasets"], "model_id": self.model_id}, indent=1, ensure_ascii=False)
        text += "\n"
        if kept.is_file() and kept.read_text(encoding="utf-8") != text:
            raise DataError(f"{self.folder} holds a run of another agent or data set ({KEPT}); take another folder.")
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(kept, text)

    def answers(self, item_ids: Sequence[str]) -> list[Answer]:
        """Run the trials of these items that lack, and return the answers.

        Raises `DataError` if trials lack then, and `RunError` if no trial of a job had a verdict.
        """
        with alone_in(self.folder, "Harbor") as handles, unsaid(DataWarning):  # said of all jobs together, in the end
            ended, counts_lost = self._ended(), self.spec.errors in {"wrong", "bounds"}
            by_lacking: dict[int, list[str]] = {}
            for item_id in item_ids:
                own = ended.get(item_id, [])
                n_done = len(own) if counts_lost or any(one.rewards for one in own) else 0
                by_lacking.setdefault(self.n_attempts - n_done, []).append(item_id)
            for n_attempts in sorted(n for n in by_lacking if n > 0):
                self._run_job(by_lacking[n_attempts], n_attempts, handles)
            ended, matrix = self._ended(), self.read(replace(self.spec, errors=None))
            return [_answer(item_id, ended[item_id], matrix) for item_id in item_ids]

    def _ended(self, job: str = "*") -> dict[str, list[JobTrial]]:
        """Return the trials of each item that have ended; those whose file was cut off, or is no trial's, have not."""
        found: dict[str, list[JobTrial]] = {}
        for path in sorted(self.folder.glob(f"{job}/*/result.json")):
            with contextlib.suppress(DataError):
                one = read_trial(path)
                if one is not None and one.has_ended:
                    found.setdefault(one.task, []).append(one)
        return found

    def _run_job(self, item_ids: Sequence[str], n_attempts: int, handles: tuple[int, ...]) -> None:
        """Run a job of these items, and check that it gave answers."""
        names = {path.name for path in self.folder.iterdir()}
        name = next(name for name in (f"job-{number}" for number in range(1, len(names) + 2)) if name not in names)
        chosen = json.loads(id_text(PROGRAM, item_ids, self.bank.responses.items))
        whole = {"job_name": name, "jobs_dir": str(self.folder.resolve()), "n_attempts": n_attempts}
        with TemporaryDirectory() as place:  # a job keeps its own copy, in which Harbor hides keys
            path = Path(place) / "job.json"
            write_text(path, json.dumps({**self.job, **whole, "datasets": [{**self.data_set, **chosen}]}))
            status = call_program([PROGRAM, "run", "-c", str(path), *self.arguments], handles, PATIENCE)
        ended = self._ended(name)
        lacking = [item_id for item_id in item_ids if len(ended.get(item_id, [])) < n_attempts]
        if lacking:
            why = f"Harbor ended with exit status {status}; its output is above" if status else "Harbor left them out"
            raise DataError(
                f"{self.folder / name}: every chosen task must have {n_attempts} trials, and {len(lacking)} of "
                f"{len(item_ids)} have fewer: {shown(lacking)}. {why}. Are they in the data set? Give the same "
                "command again to run what lacks; answers are kept."
            )
        errors = Counter(one.error or "no exception" for own in ended.values() for one in own if not one.rewards)
        if errors.total() == sum(map(len, ended.values())):
            kinds = ", ".join(f"{n} {error}" for error, n in errors.items())
            raise RunError(
                f"{self.folder / name}: no trial has a verdict ({kinds}), and the run was ended before it costs more. "
                "Fix that, and give the same command again."
            )

    def read(self, spec: ReadingSpec | None = None) -> ResponseMatrix:
        """Read the trials of all jobs.

        Raises `DataError` for trials of several agents, of tasks that the bank lacks, or of others than the bank's.
        """
        items = self.bank.responses.items
        matrix = read_matrix([self.folder], spec_like(items, spec or self.spec))
        if matrix.n_models > 1:
            raise DataError(f"{self.folder}: all trials must be of one agent, got {shown(matrix.model_ids)}.")
        foreign = set(matrix.item_ids).difference(items["item_id"])
        if foreign:
            raise DataError(f"{self.folder}: every task must be in the bank, got others: {shown(sorted(foreign))}.")
        check_same_content(matrix.items, items)
        advice = f"To go on anyway: {remedy('allow_mixed_prompts=True', '--ignore-prompts')}."
        check_same_prompts(matrix.items, items, advice=advice, is_ignored=self.spec.allow_mixed_prompts)
        return matrix

    def estimate(self, selection: Selection, *, model_id: str | None) -> ScoreEstimates:
        """Estimate the scores from the trials of a selection, under another name of the agent if one is given."""
        matrix = only_items(self.read(), selection.whole.item_ids)[0]
        if model_id:
            matrix = matrix.with_tables(models=matrix.models.with_columns(pl.lit(model_id).alias("model_id")))
        return estimate(self.bank, matrix, selection=selection.whole)

    def run_asked(self, session: Asking, batch: int, after_answer: AfterAnswer) -> None:
        """Run what a session or a gate asks, so many items a job, until it asks no more."""
        while item_ids := session.pending or session.ask(batch):
            for one in self.answers(item_ids):
                take_answer(session, one, after_answer=after_answer)


def read_job(data_set: str) -> dict[str, Any]:
    """Return the configuration of a job on a data set: NAME@VERSION, a folder of tasks, or a file of a job in JSON."""
    path = Path(data_set)
    if path.is_dir():
        return {"datasets": [{"path": str(path.resolve())}]}
    if path.is_file():
        job = mapping(read_json(path))
        data_sets = [mapping(one) for one in listed(job.get("datasets"))]
        limits = [name for one in data_sets for name in ("exclude_task_names", "n_tasks") if one.get(name) is not None]
        limits += ["tasks"] * bool(job.get("tasks"))
        if limits or [bool(one.get("name") or one.get("path")) for one in data_sets] != [True]:
            raise DataError(
                f"{path}: a job's configuration must have one data set, by name or path, whose tasks itembank chooses, "
                f"got {len(data_sets)}{f', with {shown(limits)}' if limits else ''}."
            )
        return job
    if data_set.startswith((".", "/", "~")) or path.suffix in {".json", ".yaml"}:
        raise DataError(f"{data_set}: there is no such folder of tasks, nor file of a job.")
    name, _, version = data_set.partition("@")
    return {"datasets": [{"name": name, **({"ref" if "/" in name else "version": version} if version else {})}]}


def _is(name: str, word: str) -> bool:
    """Whether a word of a command line is this option, alone or with its value."""
    return word.partition("=")[0] == name if name.startswith("--") else word[:2] == name


def _values(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return the values of an option by any of its names."""
    found = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name = next((name for name in options if _is(name, word)), None)
        if name is not None:
            found.append(following if word == name else word.removeprefix(name).removeprefix("="))
    return found


def _answer(item_id: str, trials: Sequence[JobTrial], matrix: ResponseMatrix) -> Answer:
    """Return the answer to an item: counts of trials that are right or wrong, else their mean; and what all cost."""
    means = {unit: mean_cost([one.costs.get(unit) for one in trials]) for unit in COST_COLUMNS}
    costs = {unit: len(trials) * mean for unit, mean in means.items() if mean is not None}
    at = matrix.item_ids.index(item_id) if item_id in matrix.item_ids else None
    if at is None or not matrix.observed[0, at]:
        return answer(item_id, failed=True, reason=trials[0].error or "no verdict", costs=costs)
    response = float(matrix.responses[0, at])
    n_trials = 1 if matrix.n_trials is None else int(matrix.n_trials[0, at])
    n_correct = round(response * n_trials)
    if n_trials > 1 and math.isclose(n_correct, response * n_trials, abs_tol=1e-9):
        return answer(item_id, n_correct=n_correct, n_trials=n_trials, costs=costs)
    return answer(item_id, response, costs=costs)
