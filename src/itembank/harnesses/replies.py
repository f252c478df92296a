"""What the answer of a program is: JSON on its standard output, a pattern in it, or its exit status."""

import json
import re
import signal
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from itembank.errors import DataError, ParameterError, quoted
from itembank.harnesses.drive import reason
from itembank.harnesses.programs import Ended
from itembank.readers.columns import response_of
from itembank.sessions.answers import Answer, answer_to
from itembank.sessions.events import checked_costs

ReadReply: TypeAlias = Callable[[str, Ended], Answer]
"""Makes the answer to an item of what a program left; raises `DataError` where there is none."""

RIGHT, WRONG = 0, 1
TRACEBACK: Final = "Traceback (most recent call last):"


def json_reply(item_id: str, ended: Ended) -> Answer:
    """Take the last JSON object or number that stands on lines of its own, or a word for right or wrong at the end."""
    record: object = _last_json(ended.output)
    if record is None:
        record = response_of(_last_line(ended.output))
    if record is None:
        raise DataError(
            'standard output must hold JSON such as {"response": 1}, a number, or a word such as resolved, got '
            f"{quoted(_last_line(ended.output)) if ended.output.strip() else 'nothing'}."
        )
    return answer_to(item_id, record)


def exit_reply(item_id: str, ended: Ended) -> Answer:
    """Take exit status 0 for right and 1 for wrong; a Python program that broke down ends with 1, too, and failed."""
    if ended.status not in {RIGHT, WRONG} or (ended.status == WRONG and TRACEBACK in ended.errors):
        raise DataError(_how_it_ended(ended))
    return Answer(item_id, response=1.0 if ended.status == RIGHT else 0.0)


def pattern_reply(pattern: str) -> ReadReply:
    """Make a reader that takes the number in the last match of a regular expression on standard output.

    It is the group called `response`, else the first group, else the whole match.

    Raises
    ------
    ParameterError
        When the pattern is no regular expression.
    """
    try:
        expression = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise ParameterError(f"the pattern must be a regular expression, got {pattern!r}: {error}.") from error
    group: str | int = "response" if "response" in expression.groupindex else min(1, expression.groups)

    def read(item_id: str, ended: Ended) -> Answer:
        found = None
        for found in expression.finditer(ended.output):  # noqa: B007 (the last one counts)
            pass
        if found is None:
            raise DataError(f"standard output must match {pattern!r}, got {quoted(_last_line(ended.output))}.")
        try:
            word = response_of(found[group] or "")
            return Answer(item_id, response=float(found[group]) if word is None else word)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"what {pattern!r} finds must be a number in [0, 1] or a word for right or wrong, got {found[group]!r}."
            ) from error

    return read


def reply(item_id: str, ended: Ended, read: ReadReply) -> Answer:
    """Return the answer to an item, or a failure with what the program said last; costs that it told count."""
    try:
        if ended.is_late or ended.status < 0 or (ended.status and read is not exit_reply):
            raise DataError(_how_it_ended(ended))
        return read(item_id, ended)
    except DataError as error:
        said = _last_line(ended.errors)
        text = f"{error} {said}" if said else str(error)
        return Answer(item_id, failed=True, again=True, reason=reason(text), costs=_told_costs(ended.output))


def _how_it_ended(ended: Ended) -> str:
    if ended.is_late:
        return "Its time was up."
    if ended.status >= 0:
        return f"Exit status {ended.status}."
    try:
        name = signal.Signals(-ended.status).name
    except ValueError:
        name = str(-ended.status)
    return f"Ended by signal {name}."


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _last_json(text: str) -> Mapping[str, Any] | float | None:
    """Return the JSON object or number that a text is, or its last line that is one."""
    for part in (text, *reversed(text.splitlines())):
        try:
            record = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, Mapping) or (isinstance(record, int | float) and not isinstance(record, bool)):
            return record
    return None


def _told_costs(output: str) -> dict[str, float]:
    """Costs that a program told before it failed; none where they cannot be read."""
    record = _last_json(output)
    try:
        return checked_costs(record.get("costs") if isinstance(record, Mapping) else None, "a failed attempt")
    except DataError:
        return {}
