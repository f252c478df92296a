"""What every harness is to a session: a function that runs items and returns their answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import polars as pl

from itembank.checks import check_whole
from itembank.errors import IntegrityError, quoted, remedy, shown
from itembank.responses.prompts import DIFFERS, PROMPT_HASH, PROMPT_SETTINGS
from itembank.sessions.answers import Answer, tell_all
from itembank.sessions.session import AdaptiveSession

CONTENT = "content_hash"
"""Column of a bank's items: a hash of what was asked."""

RunItems: TypeAlias = Callable[[Sequence[str]], Iterable[Answer]]
"""Run these items and give the answer of each, in any order; one that is given early is told early."""

HashOf: TypeAlias = Callable[[Any], str]
AfterAnswer: TypeAlias = Callable[[AdaptiveSession, Answer], None]


def run_session(
    session: AdaptiveSession,
    run_items: RunItems,
    *,
    batch: int = 1,
    new_units: bool = False,
    after_answer: AfterAnswer | None = None,
) -> None:
    """Run items that a session asks for, batch by batch, until it asks no more; what was pending is run first.

    Parameters
    ----------
    session : AdaptiveSession
    run_items : function of item ids
        Runs them and yields an `Answer` for each. One that could not be run is a failure, not a response of 0.
    batch : int
        Items asked for at once. A session chooses the items of a batch before it knows any of their answers.
    new_units : bool
        Take costs in units that neither the bank has nor are usual.
    after_answer : function of session and answer, optional
        Called after each answer that was told.

    Raises
    ------
    ParameterError
        When `batch` is not a whole number >= 1.
    DataError
        When an answer is none that the session takes.
    """
    check_whole("batch", batch, least=1)
    while items := session.pending[:batch] or session.ask(batch):
        for answer in run_items(items):
            take_answer(session, answer, new_units=new_units, after_answer=after_answer)


def take_answer(
    session: AdaptiveSession, answer: Answer, *, new_units: bool = False, after_answer: AfterAnswer | None = None
) -> None:
    """Tell a session one answer, and then whoever wants to know of it."""
    tell_all(session, [answer], new_units=new_units)
    if after_answer is not None:
        after_answer(session, answer)


def contents_of(items: Any) -> dict[str, str]:
    """Content hash of each item of a bank's item table that has one."""
    if CONTENT not in items.columns:
        return {}
    return dict(items.select("item_id", CONTENT).drop_nulls().iter_rows())


def untold_prompts(items: pl.DataFrame) -> str:
    """Say which prompts a bank's items cannot be compared with; empty where all can be."""
    if not {PROMPT_HASH, PROMPT_SETTINGS} & set(items.columns):
        return "the bank does not say how its items were asked, so prompts are not compared"
    hashes = items[PROMPT_HASH] if PROMPT_HASH in items.columns else pl.Series([None] * items.height, dtype=pl.String)
    n_mixed = int((hashes == DIFFERS).sum())
    if n_mixed:
        return f"the bank's models had different prompts for {n_mixed} of {items.height} items: these are not compared"
    return ""


def refuse_prompts(told: str, advice: str) -> NoReturn:
    """Raise `IntegrityError` for prompts that differ from those of the bank, as `prompt_differences` says."""
    raise IntegrityError(
        f"{told}. No request was sent. {advice} To go on all the same: "
        f"{remedy('ignore_prompts=True', '--ignore-prompts')}."
    )


def check_same_content(task: str, found: Mapping[str, Any], contents: Mapping[str, str], hash_of: HashOf) -> None:
    """Check that the items of a task are what they were when the bank was made; no model has been called yet.

    Parameters
    ----------
    task : str
    found : mapping of item id to what the harness has of it
    contents : mapping of item id to content hash
        As `contents_of` a bank's items.
    hash_of : function
        Hash of what the harness has, as its logs have it.

    Raises
    ------
    IntegrityError
        Naming items that are not.
    """
    changed = [one for one, asked in found.items() if one in contents and hash_of(asked) != contents[one]]
    if changed:
        raise IntegrityError(
            f"items must be what the bank's models were asked, got {len(changed)} of {len(found)} of task "
            f"{quoted(task)} with another content: {shown(changed)}. No request was sent. The benchmark changed: run "
            "the version of the bank, or calibrate a new one."
        )
