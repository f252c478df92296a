"""What a run does while the harness evaluates: keep its samples, or drive a session batch by batch."""

from collections.abc import Iterator, Sequence
from typing import Any

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.harnesses.lm_eval.documents import Documents, chosen_documents
from itembank.harnesses.lm_eval.patches import Original
from itembank.harnesses.lm_eval.prompts import BankPrompts, check_kept_prompts
from itembank.harnesses.lm_eval.releases import HarnessError
from itembank.harnesses.lm_eval.responses import answers_of, responses_of, token_costs
from itembank.harnesses.lm_eval.rows import Rows
from itembank.harnesses.lm_eval.selected import ChosenItems
from itembank.harnesses.protocol import AfterAnswer, contents_of, run_session
from itembank.planning.select import has_next_stage, next_stage
from itembank.sessions.answers import Answer
from itembank.sessions.session import AdaptiveSession

LEAST_BATCH = 8
LEAST_BATCH_OF_STAGES = 64
"""More than of sessions: which items are run does not depend on the batch, only what is lost where a run is killed."""


class ItemsByAndBy(ChosenItems):
    """Hooks that evaluate items as they are asked for, inside one evaluation of the harness.

    Parameters
    ----------
    bank : Bank
    rows : Rows
        Samples of earlier runs among them: these items are not run again.
    askable : documents by task
        All that may be asked, compared with the bank before the first request.
    batch : int or None
        Items run at once; by default the model's own batch, or more.
    prompts : BankPrompts or None
        What prompts must be.
    """

    depends_on_answers = True

    def __init__(
        self,
        bank: Bank,
        rows: Rows,
        askable: Documents,
        *,
        batch: int | None = None,
        prompts: BankPrompts | None = None,
    ) -> None:
        super().__init__({}, contents_of(bank.responses.items), askable, prompts)
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
        return self.batch or max(least, _batch_size(lm))

    def run_missing(self, items: Sequence[str], original: Original, arguments: dict[str, Any]) -> None:
        """Run those of the items that have no samples yet, and keep their samples (ranks but the first get none)."""
        missing = [item for item in items if item not in self.rows.by_item]
        if missing:
            self.chosen = chosen_documents(missing)
            results = super().evaluate(original, {**arguments, "log_samples": True, "bootstrap_iters": 0})
            self.has_results = results is not None
            if results is not None:
                self.rows.add(results)


class SessionItems(ItemsByAndBy):
    """Hooks that drive a session to its end inside one evaluation of the harness.

    Parameters
    ----------
    session : AdaptiveSession
    bank, rows, askable, batch, prompts
        As of `ItemsByAndBy`.
    """

    def __init__(
        self,
        session: AdaptiveSession,
        bank: Bank,
        rows: Rows,
        askable: Documents,
        *,
        batch: int | None = None,
        prompts: BankPrompts | None = None,
        after_answer: AfterAnswer | None = None,
    ) -> None:
        super().__init__(bank, rows, askable, batch=batch, prompts=prompts)
        self.session, self.after_answer = session, after_answer

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Run what the session asks for until it asks no more; return all samples as one evaluation."""
        run_session(
            self.session,
            lambda items: self._run(items, original, arguments),
            batch=self.begin(original, arguments),
            after_answer=self.after_answer,
        )
        return self.rows.as_results()

    def _run(self, items: Sequence[str], original: Original, arguments: dict[str, Any]) -> Iterator[Answer]:
        """Run items that have no samples yet, keep their samples, and answer all."""
        self.run_missing(items, original, arguments)
        costs = {item: token_costs(arguments["lm"], self.rows.by_item[item][1]) for item in items}
        yield from answers_of(responses_of(self.rows, self.bank, self.session.model_id, items), costs)


class StagedItems(ItemsByAndBy):
    """Hooks that run all stages of a multistage test, or one selection, inside one evaluation of the harness.

    Parameters
    ----------
    selection : Selection
        The first stage, or the only one.
    model_id : str
    bank, rows, batch, prompts
        As of `ItemsByAndBy`.
    has_stages : bool
        Whether further stages are run after the first.
    """

    def __init__(
        self,
        selection: Selection,
        model_id: str,
        bank: Bank,
        rows: Rows,
        *,
        has_stages: bool,
        batch: int | None = None,
        prompts: BankPrompts | None = None,
    ) -> None:
        askable = chosen_documents(bank.responses.items["item_id"] if has_stages else selection)
        super().__init__(bank, rows, askable, batch=batch, prompts=prompts)
        self.stage, self.model_id, self.depends_on_answers = selection, model_id, has_stages

    @property
    def item_ids(self) -> Sequence[str]:
        """Items of the selection, or of all stages so far."""
        return (self.stage.whole if self.depends_on_answers else self.stage).item_ids

    def advance(self) -> Sequence[str]:
        """Go on to the first stage that was not run to its end, or to the last; return what is left of it to run."""
        while True:
            missing = [item for item in self.stage.item_ids if item not in self.rows.by_item]
            if missing or not (self.depends_on_answers and has_next_stage(self.stage)):
                return missing
            answers = responses_of(self.rows, self.bank, self.model_id, self.item_ids)
            self.stage = next_stage(self.bank, self.stage, answers)

    def evaluate(self, original: Original, arguments: dict[str, Any]) -> Any:
        """Run stage after stage; return all samples as one evaluation (on the first rank; others get nothing)."""
        batch = self.begin(original, arguments, LEAST_BATCH_OF_STAGES)
        while self.has_results and (missing := self.advance()):
            n = len(missing) if arguments["lm"].world_size > 1 else batch
            self.run_missing(missing[:n], original, arguments)
        return self.rows.as_results(self.item_ids) if self.has_results else None


def _batch_size(lm: Any) -> int:
    """Items that a model takes at once, 1 where it does not say ('auto')."""
    size = getattr(lm, "batch_size", None)
    return size if isinstance(size, int) and size > 0 else 1
