"""What drives a session: a function that runs one item, several at a time."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from itembank.checks import check_whole
from itembank.errors import DataError, RunError, quoted, visible
from itembank.progress import interrupts_to
from itembank.sessions.answers import answer_to, tell_all
from itembank.sessions.asking import Asking
from itembank.sessions.events import Answer, Failed
from itembank.tables import plural

AfterAnswer: TypeAlias = Callable[[Any, Answer], None]
"""Is called with the session and each answer."""
Outcome: TypeAlias = float | Answer | Mapping[str, Any]
"""What running an item gives: a response, an answer, or the fields of an answer by name (`costs` among them)."""
MOST_REASON: Final = 200
"""Characters of the reason of a failure that are kept."""
INTERRUPTED: Final = None
"""Stands where an item and its outcome would, when somebody wants to stop."""


def take_answer(
    session: Asking, answer: Answer, *, new_units: bool = False, after_answer: AfterAnswer | None = None
) -> None:
    """Tell a session one answer, and then whoever wants to know of it."""
    tell_all(session, [answer], new_units=new_units)
    if after_answer is not None:
        after_answer(session, answer)


def drive(
    session: Asking,
    run_item: Callable[[str], Outcome],
    n_jobs: int = 4,
    *,
    retries: int = 2,
    max_failures: int = 10,
    new_units: bool = False,
    after_answer: AfterAnswer | None = None,
    on_interrupt: Callable[[], None] | None = None,
) -> None:
    """Run items that a session asks for, several at a time in threads, until it asks no more.

    Whenever an item is done, the session gets its answer and chooses the next one, while the others still run. Items
    that were pending when the session was opened are run first. Items that were answered are never run again.

    After Ctrl-C or an error no item is started any more. Those that run are waited for, and their answers are kept;
    Ctrl-C at that time does not wait. What has no answer then stays pending.

    Parameters
    ----------
    session : AdaptiveSession or GateRun
    run_item : function of an item's id
        Returns the response, a mapping such as ``{"response": 1.0, "costs": {"cost_usd": 0.01}}``, or what
        `itembank.sessions.answers.answer` makes. An
        exception is a failure, with its text as the reason, and not a response of 0.
    n_jobs : int
        Items that run at the same time.
    retries : int
        How often an item that failed may be asked again before it is skipped.
    max_failures : int
        End with an error after this many failures in a row. The items among them may be asked again later.
    new_units : bool
        Take costs in units that neither the bank has nor are usual.
    after_answer : function of session and answer, optional
        Called in this thread after each answer and failure.
    on_interrupt : function, optional
        Called at each Ctrl-C, and at an error, to hurry the items that run.

    Raises
    ------
    RunError
        After `max_failures` failures in a row.
    KeyboardInterrupt
        After Ctrl-C.
    DataError, JournalError
        When an answer cannot be kept: a unit of cost is unknown, or the disk is full.
    ParameterError
        When a number is not valid.

    Examples
    --------
    >>> with itembank.open_session("run.jsonl") as session:  # doctest: +SKIP
    ...     itembank.harnesses.drive(session, lambda item_id: my_agent(item_id).is_right, n_jobs=8)
    """
    check_whole("n_jobs", n_jobs, least=1)
    items = _Items(session, retries, max_failures, new_units, after_answer)
    ended: SimpleQueue[tuple[str, object] | None] = SimpleQueue()

    def run(item_id: str) -> None:
        try:
            ended.put((item_id, run_item(item_id)))
        except BaseException as error:  # noqa: BLE001 (whatever ends an item is told as its failure)
            ended.put((item_id, error))

    def start(item_id: str) -> None:
        threading.Thread(target=run, args=(item_id,), daemon=True).start()

    hurry = on_interrupt or (lambda: None)
    ending: BaseException | None = None
    is_running = True
    # put into the queue instead of raised anywhere: between a journal and its session it would part them
    with interrupts_to(lambda *_: ended.put(INTERRUPTED)):
        while is_running:
            try:
                is_running = _step(items, ended, 0 if ending else n_jobs, start)
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (raised when nothing runs any more)
                if ending is None or isinstance(error, KeyboardInterrupt):
                    hurry()
                if ending is not None and isinstance(error, KeyboardInterrupt):
                    break  # whoever presses Ctrl-C now does not want to wait for what runs
                ending = ending or error
    if ending is not None:
        raise ending


def _step(
    items: "_Items", ended: SimpleQueue[tuple[str, object] | None], n_jobs: int, start: Callable[[str], None]
) -> bool:
    """Let up to n_jobs items run, none where everything is to end, and take the next outcome; false once none runs."""
    while len(items.running) < n_jobs and (item_id := items.start()) is not None:
        start(item_id)
    if not items.running:
        return False
    event = ended.get()
    is_interrupt = event is INTERRUPTED or isinstance(event[1], KeyboardInterrupt)
    if event is not INTERRUPTED:
        items.finish(*event, is_stopping=is_interrupt or n_jobs == 0)
    if is_interrupt:
        raise KeyboardInterrupt
    return True


async def drive_async(
    session: Asking,
    run_item: Callable[[str], Awaitable[Outcome]],
    n_jobs: int = 4,
    *,
    retries: int = 2,
    max_failures: int = 10,
    new_units: bool = False,
    after_answer: AfterAnswer | None = None,
) -> None:
    """Do what `drive` does, with an async function in the event loop that runs; when cancelled, it cancels its items.

    Parameters and errors are those of `drive`.
    """
    check_whole("n_jobs", n_jobs, least=1)
    items = _Items(session, retries, max_failures, new_units, after_answer)
    tasks: dict[asyncio.Task[object], str] = {}

    async def run(item_id: str) -> object:
        try:
            return await run_item(item_id)
        except Exception as error:  # noqa: BLE001 (whatever ends an item is told as its failure)
            return error

    try:
        while True:
            while len(tasks) < n_jobs and (item_id := items.start()) is not None:
                tasks[asyncio.ensure_future(run(item_id))] = item_id
            if not tasks:
                return
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in tasks if task.done()]:
                items.finish(tasks.pop(task), task.result())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class _Items:
    """Which item runs next, and what becomes of what it gave: what all ways of driving a session share."""

    session: Asking
    retries: int
    max_failures: int
    new_units: bool
    after_answer: AfterAnswer | None
    running: set[str] = field(default_factory=set)
    _n_failed: Counter[str] = field(default_factory=Counter)
    _in_a_row: list[Failed] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_whole("retries", self.retries, least=0)
        check_whole("max_failures", self.max_failures, least=1)

    def start(self) -> str | None:
        """Return the item that is to run now; None where none is, for the time being or at all."""
        waiting = [item_id for item_id in self.session.pending if item_id not in self.running]
        item_id = next(iter(waiting or self.session.ask()), None)
        if item_id is not None:
            self.running.add(item_id)
        return item_id

    def finish(self, item_id: str, outcome: object, *, is_stopping: bool = False) -> None:
        """Tell what an item gave; while everything stops a failure may come of that, and the item stays pending."""
        self.running.discard(item_id)
        answer = _answer(item_id, outcome)
        if isinstance(answer, Failed):
            if is_stopping:
                return
            self._n_failed[item_id] += 1
            answer = replace(answer, again=answer.again and self._n_failed[item_id] <= self.retries)
            self._in_a_row.append(answer)
        else:
            self._in_a_row.clear()
        take_answer(self.session, answer, new_units=self.new_units, after_answer=self.after_answer)
        if len(self._in_a_row) >= self.max_failures:
            self._give_up()

    def _give_up(self) -> None:
        """End the run; what failed in a row may not be the items' fault, so they can be asked again."""
        last = {answer.item_id: answer for answer in self._in_a_row}
        for answer in last.values():
            if not answer.again:
                self.session.tell_failed(answer.item_id, again=True, reason=answer.reason)
        failed = self._in_a_row[-1]
        raise RunError(
            f"{plural(self.max_failures, 'attempt')} in a row failed, and the run was ended before it costs more. The "
            f"last was item {quoted(failed.item_id)}: {failed.reason.rstrip('.')}. Fix it, and run again: answers so "
            "far are kept, and these items can be asked again."
        )


def _answer(item_id: str, outcome: object) -> Answer:
    """Make an answer of what running an item gave; of an error, and of what is no answer, a failure."""
    if not isinstance(outcome, BaseException):
        try:
            return answer_to(item_id, outcome)
        except DataError as error:
            outcome = error
    text = f"{outcome}" if isinstance(outcome, DataError) else f"{type(outcome).__name__}: {outcome}"
    return Failed(item_id, again=True, reason=reason(text))


def reason(text: str) -> str:
    """Make a text one that a journal can keep as the reason of a failure: a line that drives no terminal."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= MOST_REASON else f"{line[:MOST_REASON]}..."
