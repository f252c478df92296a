"""Runs inside the harness: a selection, or an adaptive session, by whatever calls the harness."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itembank.bank.arguments import GivenBank, as_bank, as_selection
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_whole
from itembank.errors import DataError, ItembankError, shown
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates
from itembank.gating.running import GateRun
from itembank.harnesses.drive import AfterAnswer, take_answer
from itembank.progress import ProgressCallback, silent
from itembank.readers.matching import AUTO
from itembank.responses.error_kinds import Errors
from itembank.responses.prompts import PROMPT_HASH
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.asking import Asking
from itembank.sessions.estimates import SessionEstimate
from itembank.sessions.journal_sessions import KeptSession, extend_session, open_session, start_session
from itembank.sessions.pool import with_errors_of
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_harnesses.lm_eval.command import USUAL_SEED
from itembank_harnesses.lm_eval.documents import (
    BankPrompts,
    Places,
    Prepared,
    arguments_of,
    item_id,
    prompt_hashes,
    tasks_of,
)
from itembank_harnesses.lm_eval.patches import HarnessError, Original, hooked
from itembank_harnesses.lm_eval.rows import RowFile, Rows, answers_of, responses_of, token_costs
from itembank_harnesses.lm_eval.selected import ChosenItems

LEAST_BATCH = 8
LEAST_BATCH_OF_SELECTIONS = 64
"""More than of sessions: which items are run does not depend on the batch, only what is lost where a run is killed."""
Launch = Callable[[], Any]
"""Calls the harness once, in this process; it may load a model, write logs, and print what it likes."""


class ItemsByAndBy(ChosenItems):
    """Hooks that evaluate items as they are asked for, inside one evaluation of the harness."""

    depends_on_answers = True
    runs_all = False

    def __init__(
        self,
        bank: Bank,
        rows: Rows,  # Samples of earlier runs among them: these items are not run again
        askable: Sequence[str],  # All that may be asked, compared with the bank before the first request
        *,
        batch: int | None = None,  # Items run at once; by default the model's own batch, or more
        prompts: BankPrompts | None = None,  # What prompts must be
        match: str = AUTO,  # How items are found among the documents
    ) -> None:
        super().__init__(Places(askable, bank.responses.items, match), prompts)
        if batch is not None:
            check_whole("batch", batch, least=1)
        self.bank, self.rows, self.batch = bank, rows, batch
        self.has_results = True

    def begin(self, original: Original, arguments: dict[str, Any], least: int = LEAST_BATCH) -> int:
        """Make all that may be asked ready; return how many items to run at once."""
        lm = arguments["lm"]
        if lm.world_size > 1 and self.depends_on_answers:
            raise HarnessError(
                f"a run whose items depend on answers must be one process of the harness, got {lm.world_size} ranks. "
                "Use one process (tensor parallel and served models are one), or run a selection."
            )
        self.prepare_all(original, arguments)
        check_kept_prompts(self.rows, self.prepared)
        own = getattr(lm, "batch_size", None)  # which may be 'auto'
        return self.batch or max(least, own if isinstance(own, int) else 1)

    def run_missing(self, items: Sequence[str], original: Original, arguments: dict[str, Any]) -> None:
        """Run those of the items that have no samples yet, and keep their samples (ranks but the first get none)."""
        missing = [item for item in items if item not in self.rows.by_item]
        if missing:
            self.chosen = self.places.documents(missing)
            results = super().evaluate(original, {**arguments, "log_samples": True, "bootstrap_iters": 0})
            self.has_results = results is not None
            if results is not None:
                self.rows.add(results, {item_id(*self.places.by_item[item]): item for item in missing})


class SessionItems(ItemsByAndBy):
    """Hooks that drive a session to its end inside one evaluation of the harness."""

    def __init__(
        self,
        session: Asking,
        bank: Bank,  # As of `ItemsByAndBy`
        rows: Rows,
        *,
        batch: int | None = None,
        prompts: BankPrompts | None = None,
        match: str = AUTO,
        after_answer: AfterAnswer | None = None,
        least: int = LEAST_BATCH,  # Of the items that are run at once, unless `batch` says how many
    ) -> None:
        super().__init__(bank, rows, session.askable, batch=batch, prompts=prompts, match=match)
        self.session, self.after_answer, self.least = session, after_answer, least

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Run what the session asks for until it asks no more; return all samples as one evaluation."""
        session, batch = self.session, self.begin(original, arguments, self.least)
        while items := session.pending[:batch] or session.ask(batch):
            self.run_missing(items, original, arguments)
            costs = {item: token_costs(arguments["lm"], self.rows.by_item[item][1]) for item in items}
            for answer in answers_of(responses_of(self.rows, self.bank, session.model_id, items), costs):
                take_answer(session, answer, after_answer=self.after_answer)
        return self.rows.as_results()


class SelectedItems(ItemsByAndBy):
    """Hooks that run a selection, batch by batch, inside one evaluation of the harness."""

    depends_on_answers = False

    @property
    def missing(self) -> list[str]:
        """Items that have no samples yet."""
        return [item for item in self.places.wanted if item not in self.rows.by_item]

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Run what is missing; return all samples as one evaluation (on the first rank; others get nothing)."""
        batch = self.begin(original, arguments, LEAST_BATCH_OF_SELECTIONS)
        while self.has_results and (missing := self.missing):
            n = len(missing) if arguments["lm"].world_size > 1 else batch
            self.run_missing(missing[:n], original, arguments)
        return self.rows.as_results(self.places.wanted) if self.has_results else None


def check_kept_prompts(rows: Rows, prepared: Mapping[str, Prepared]) -> None:
    """Check that items with samples had the prompts that the harness has built now."""
    if not rows.by_item:
        return
    built = prompt_hashes(prepared)
    places = {name: item_id(task, samples[0]["doc_id"]) for name, (task, samples) in rows.by_item.items()}
    kept = {name: rows.by_item[name][1][0].get(PROMPT_HASH) for name, place in places.items() if place in built}
    unlike = [name for name, prompt in kept.items() if prompt is not None and prompt != built[places[name]]]
    if unlike:
        raise DataError(
            f"a run goes on with the prompts that it was started with, and {len(unlike)} of {len(kept)} answered items "
            f"have others now: {shown(unlike)}. No request was sent. Give the arguments of lm_eval that make prompts "
            "(shots, seed, templates, system instruction) as before, or take another folder."
        )


@dataclass(frozen=True, slots=True)
class HarnessRun:
    """What a run of chosen items came to.

    Attributes
    ----------
    responses : ResponseMatrix
        Of the one model to the items that were run.
    estimates : ScoreEstimates
        Full-benchmark scores with their intervals.
    """

    responses: ResponseMatrix
    estimates: ScoreEstimates


class Runner:
    """Runs items of a bank on a model of lm_eval, in this process.

    Parameters
    ----------
    lm : lm_eval.api.model.LM, or the name of a model
        As `simple_evaluate` takes it.
    tasks : sequence of str
        As `simple_evaluate` takes them. Name the group where the bank's runs did, since a group may change its tasks.
    bank : Bank or path
    model_id : str
    match : str
        How items are found among the tasks' documents: 'auto', 'hash' or 'doc.FIELD' (`itembank.readers.matching`).
    **arguments
        Further arguments of `lm_eval.simple_evaluate`: `num_fewshot`, `apply_chat_template`, `task_manager`, ... Shots,
        chat template and the seed of few-shot examples are those of the bank's runs, where none are given.
    ignore_prompts : bool
        Run also where prompts are others than those of the bank's runs.

    Examples
    --------
    >>> runner = Runner(lm, tasks=["mmlu"], bank="bank")  # doctest: +SKIP
    >>> runner.run(select("bank", 100)).estimates  # doctest: +SKIP
    """

    def __init__(
        self,
        lm: Any,
        *,
        tasks: Sequence[str],
        bank: GivenBank,
        model_id: str = "model",
        match: str = AUTO,
        ignore_prompts: bool = False,
        **arguments: Any,
    ) -> None:
        self.lm, self.tasks, self.model_id = lm, list(tasks), model_id
        self.bank = as_bank(bank)
        self.arguments, self.match = arguments, match
        self.ignore_prompts = ignore_prompts

    def run(self, selection: Selection | str | Path) -> HarnessRun | None:
        """Run a selection and estimate the full scores; None on ranks that the harness gives no results to.

        Raises
        ------
        DataError, IntegrityError
            When an item is not found, or its document or prompt is not the one of the bank.
        """
        chosen = as_selection(selection, may_be_later=True)
        if chosen is None:
            raise DataError("a run needs a selection, got none. Make one with select(bank, n).")
        launch, prompts = self._prepared(chosen.item_ids)
        return run_selection(
            launch, self.bank, chosen, Rows(), prompts=prompts,
            model_id=self.model_id, batch=chosen.n_items, match=self.match,
        )  # fmt: skip

    def run_adaptive(
        self,
        spec: SessionSpec | None = None,
        *,
        journal: str | Path,
        batch: int | None = None,
        after_answer: AfterAnswer | None = None,
        progress: ProgressCallback = silent,
    ) -> SessionEstimate:
        """Run an adaptive session, or go on with the one of a journal, and estimate the full scores.

        Parameters
        ----------
        spec : SessionSpec, optional
            Of a new session; of one that goes on it must be the same.
        journal : path
            The session's journal; samples of the harness are kept beside it, in ``NAME.rows``. What is finished there
            is never run again, even after a crash.
        batch : int, optional
            Items asked for and run at once; by default the model's batch size, 8 at least.
        after_answer : function of session and answer, optional
        progress : ProgressCallback
            Of getting the bank ready.

        Raises
        ------
        DataError, IntegrityError
            As `run`; also when the journal holds a session of another spec or model, or samples with other prompts.
        """
        spec = SessionSpec() if spec is None else spec
        launch, prompts = self._prepared(self.bank.responses.item_ids)
        with session_at(journal, self.bank, spec, model_id=self.model_id, progress=progress) as session:
            rows = RowFile(rows_path(journal))  # the journal's lock guards both files
            run_adaptively(
                launch, self.bank, session, rows, prompts=prompts,
                batch=batch, match=self.match, after_answer=after_answer,
            )  # fmt: skip
            return session.estimate()

    def _prepared(self, item_ids: Sequence[str]) -> tuple[Launch, BankPrompts]:
        """Return what calls the harness, with the bank's settings where none are given, and what prompts must be."""
        from lm_eval import evaluator  # noqa: PLC0415

        items = self.bank.responses.items
        arguments = {**arguments_of(items, tasks_of(items, item_ids)), **self.arguments}
        seed = arguments.get("fewshot_random_seed", USUAL_SEED)
        prompts = BankPrompts(items, "num_fewshot" not in arguments, seed, is_ignored=self.ignore_prompts)
        called = {"model": self.lm, "tasks": list(self.tasks), "bootstrap_iters": 0, **arguments}
        return lambda: evaluator.simple_evaluate(**called), prompts


def rows_path(journal: str | Path) -> Path:
    """Return where the samples of a session's journal are kept."""
    return Path(f"{journal}.rows")


def run_selection(
    launch: Launch,
    bank: Bank,
    selection: Selection,
    rows: Rows,  # Items that have samples here are not run again
    *,
    model_id: str,
    level: float = 0.95,
    errors: Errors | None = None,  # What lost answers count as
    batch: int | None = None,  # Items run at once: what is lost where a run is killed
    prompts: BankPrompts | None = None,  # What prompts must be, compared before the first request
    match: str = AUTO,  # How items are found among the documents
    # Whether the harness has written its logs: where all items have samples, nothing is launched then
    is_logged: bool = False,
) -> HarnessRun | None:  # None on ranks without results
    """Run a selection by whatever `launch` calls, and estimate the full scores."""
    hooks = SelectedItems(bank, rows, selection.item_ids, batch=batch, prompts=prompts, match=match)
    if hooks.missing or not is_logged:
        with hooked(hooks):
            launch()
    if not hooks.has_results:
        return None
    if hooks.missing:
        raise DataError("the harness must evaluate the chosen items, and ended before it did.")
    responses = responses_of(rows, bank, model_id, selection.item_ids)
    return HarnessRun(responses, estimate(bank, responses, selection=selection, level=level, errors=errors))


@contextmanager
def session_at(
    journal: str | Path, bank: Bank, spec: SessionSpec, *, model_id: str, progress: ProgressCallback = silent
) -> Iterator[AdaptiveSession]:
    """Start a session, or go on with the one that the journal holds; its budget may be raised."""
    if not Path(journal).exists():
        with start_session(journal, bank, spec, model_id=model_id, progress=progress) as session:
            try:
                yield session
            except ItembankError:  # refused before anything was asked: another try may begin anew
                if not session.history:
                    Path(journal).unlink()
                raise
        return
    before = KeptSession.read(journal)
    begun, spec = before.spec, with_errors_of(bank, spec)
    wanted: Mapping[str, Any] = {**spec.to_dict(), "model_id": model_id}
    kept = {**begun.to_dict(), "model_id": before.settings["model_id"]}
    unlike = [name for name, value in wanted.items() if kept[name] != value]
    if unlike and unlike != ["budget"]:
        name = next(name for name in unlike if name != "budget")
        raise DataError(
            f"{journal}: a session goes on with the choices it was started with, got another {name}: {wanted[name]!r} "
            f"instead of {kept[name]!r}. Repeat those, or start another elsewhere."
        )
    if unlike:
        costs = {unit: amount for unit, amount in spec.budget.costs.items() if amount != begun.budget.costs.get(unit)}
        n_items = None if spec.budget.n_items == begun.budget.n_items else spec.budget.n_items
        extend_session(journal, bank, n_items=n_items, costs=costs, progress=progress)
    with open_session(journal, bank, progress=progress) as session:
        yield session


def run_adaptively(
    launch: Launch,
    bank: Bank,
    session: Asking,
    rows: Rows,
    *,
    batch: int | None = None,
    prompts: BankPrompts | None = None,
    match: str = AUTO,
    after_answer: AfterAnswer | None = None,
) -> None:
    """Drive a session to its end, or the stages of a gate to a verdict, inside what `launch` calls."""
    least = LEAST_BATCH_OF_SELECTIONS if isinstance(session, GateRun) else LEAST_BATCH
    hooks = SessionItems(
        session, bank, rows, batch=batch, prompts=prompts, match=match, after_answer=after_answer, least=least
    )
    with hooked(hooks):
        launch()
