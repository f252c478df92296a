"""Attack: `session tell`, killed at any moment. What it confirmed must stay, and nothing else may come in."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from itembank.errors import ItembankError
from itembank.sessions.journal import parse_journal
from tests.attacks.dying import before_step, ended, within_journal_write
from tests.attacks.killed import answer_of, folder_with
from tests.attacks.running import fork, run_here, run_to_files

ITEMS = tuple(f"{('math', 'code', 'law')[k % 3]}/{k}" for k in range(18))
"""Of the bank in the workplace."""
NEEDS = ("bank", "run.jsonl")
MOST_STEPS = 20
"""More steps of input and output than a `tell` has."""


@dataclass(frozen=True, slots=True)
class Survival:
    """What became of the answers that were told one session by commands that were killed."""

    n_told: int
    n_killed: int
    n_confirmed: int  # their command said that they are kept
    n_unconfirmed: int  # kept although their command was killed before it said so
    n_torn: int  # kills that left a part of a line
    problem: str = ""  # empty when no confirmed answer was lost, none came in untold, and the session goes on


def survive(workplace: Path, rng: np.random.Generator, *, n_kills: int = 20) -> Survival:
    """Tell one session answers, kill most of the commands, and look at the journal after each."""
    with folder_with(NEEDS, workplace) as folder:
        before = len(_told(folder))
        given: dict[int, dict[str, Any]] = {}
        confirmed: set[int] = set()
        n_killed, n_torn, problem, seconds = 0, 0, "", 0.0
        for number in range(1, n_kills + 1):
            # the cost tells answers apart that are otherwise alike
            given[number] = {"item_id": str(rng.choice(ITEMS)), "response": float(rng.integers(2)), "cost": number}
            started = time.monotonic()
            if number == 1:  # undisturbed, to see how long it takes
                ended(fork(lambda: run_to_files(_words(given[1]), folder)))
                seconds = time.monotonic() - started
            else:
                n_killed += _tell_and_kill(folder, given[number], rng, 1.3 * seconds) < 0
            if _says_told(folder / "out"):
                confirmed.add(number)
            try:
                found = _told(folder)[before:]
            except ItembankError as error:
                problem = f"after answer {number}: {error}"
                break
            n_torn += _journal(folder).n_torn > 0
            if problem := _wrong(found, given, confirmed):
                break
        problem = problem or answer_of(lambda: _goes_on(folder))
        kept = {one["cost"] for one in _told(folder)[before:]} if not problem else set()
        return Survival(len(given), n_killed, len(confirmed), len(kept - confirmed - {0}), n_torn, problem)


def _tell_and_kill(folder: Path, answer: dict[str, Any], rng: np.random.Generator, longest: float) -> int:
    """Tell an answer in a fork that dies at a moment, before a step or within the write, if it dies in time."""
    way, step = int(rng.choice([0, 0, 1, 1, 2])), int(rng.integers(1, MOST_STEPS))
    moment = float(rng.uniform(0.0, longest)) if way == 0 else None

    def work() -> None:
        if way == 1:
            before_step(step)
        if way == 2:
            within_journal_write(rng)
        run_to_files(_words(answer), folder)

    return ended(fork(work), after=moment)


def _words(answer: dict[str, Any]) -> tuple[str, ...]:
    cost = f"output_tokens={answer['cost']}"
    return ("session", "tell", "run.jsonl", answer["item_id"], "--response", str(answer["response"]), "--cost", cost)


def _says_told(path: Path) -> bool:
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["told"])
    except (ValueError, OSError):
        return False
    finally:
        path.unlink(missing_ok=True)


def _told(folder: Path) -> list[dict[str, Any]]:
    told = [one for one in _journal(folder).events if one["event"] == "told"]
    return [
        {**{k: one[k] for k in ("item_id", "response")}, "cost": int(one["costs"]["output_tokens"])} for one in told
    ]


def _journal(folder: Path) -> Any:
    return parse_journal((folder / "run.jsonl").read_bytes(), "run.jsonl")


def _wrong(found: list[dict[str, Any]], given: dict[int, dict[str, Any]], confirmed: set[int]) -> str:
    numbers = [one["cost"] for one in found]
    if lost := confirmed - set(numbers):
        return f"confirmed answers were lost: {sorted(lost)}"
    if len(set(numbers)) < len(numbers):
        return f"answers stand there twice: {numbers}"
    strange = [one for one in found if given.get(one["cost"]) != one]
    return f"answers that nobody told: {strange}" if strange else ""


def _goes_on(folder: Path) -> str:
    """Say why the session cannot go on, empty when it can and says of every answer what it is."""
    last = {"item_id": ITEMS[0], "response": 1.0, "cost": 0}
    ask, status = ("session", "ask", "run.jsonl"), ("session", "status", "run.jsonl", "--format", "json")
    for words in (ask, _words(last), status):
        outcome = run_here(words, folder=folder)
        if outcome.code:
            return f"{words} exits {outcome.code}: {outcome.err}{outcome.escaped}"
    n_items = len({one["item_id"] for one in _told(folder)})
    if (said := json.loads(outcome.out)["n_items"]) != n_items:
        return f"status counts {said} items instead of {n_items}"
    left = [name for name in os.listdir(folder) if name.endswith(".partial")]  # noqa: PTH208 (names)
    return f"left behind: {left}" if left else ""
