"""Lines of a session's journal: one JSON object each, with a checksum that depends on every line before it.

The first line is the header: what the session is, and all it depends on. Each line after it holds one event.

    {"kind":"itembank session","schema_version":1, ... ,"check":"5f6c..."}
    {"time":"2025-01-31T12:00:00Z","event":"asked","item_ids":["q17"],"check":"90ab..."}

``check`` is the beginning of the SHA-256 of the check of the line before (nothing for the header) and the bytes of
this line up to ``,"check"``. So a line that was changed, removed, moved or copied in is found when the journal is read.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from itembank.errors import DataError, IntegrityError

KIND = "itembank session"
SCHEMA_VERSION = 1
BEGINNING = b'{"kind":"itembank session"'
"""First bytes of a journal."""
N_CHECK = 16
_ENDING = re.compile(rb',"check":"([0-9a-f]{16})"\}')
_N_ENDING = len(',"check":""}') + N_CHECK


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What stands in a journal."""

    header: Mapping[str, Any]  # What the session is, less `check`
    events: tuple[Mapping[str, Any], ...]  # The events, oldest first, less `time` and `check`
    times: tuple[str, ...]  # When each was written, UTC
    n_bytes: int  # Length of the whole lines
    n_torn: int  # Bytes after the last whole line: a line that is being written, or whose writer was killed
    last_check: str  # Check of the last whole line


def encode_line(record: Mapping[str, Any], previous_check: str) -> tuple[bytes, str]:
    """Return the line of a record, ending in a newline, and its check.

    Raises
    ------
    DataError
        When the record holds a number that JSON has not (NaN, infinity), or something that is no JSON at all.
    """
    body = _json(record)[:-1]
    check = _check(previous_check, body)
    return body + b',"check":"' + check.encode("ascii") + b'"}\n', check


def parse_journal(content: bytes, name: str) -> JournalContent:
    """Read the bytes of a journal called `name`; whatever follows the last newline is left out and counted.

    Raises
    ------
    DataError
        When it is no journal, its header is not whole, or it has another schema version.
    IntegrityError
        When a line is not what was written.
    """
    end = content.rfind(b"\n") + 1
    lines = content[:end].split(b"\n")[:-1]
    if not lines:
        raise DataError(_no_header(content, name))
    header, check = _parse_header(lines[0], name)
    events, times = [], []
    for number, line in enumerate(lines[1:], start=2):
        record, check = _parse_line(line, check, f"{name}, line {number} of {len(lines)}", number - 1)
        times.append(str(record.pop("time", "")))
        events.append(record)
    return JournalContent(header, tuple(events), tuple(times), end, len(content) - end, check)


def _parse_header(line: bytes, name: str) -> tuple[dict[str, Any], str]:
    """Read the first line; what kind of file it is comes before whether it is whole."""
    header = _object(line)
    if header is None and line.startswith(BEGINNING):
        return _parse_line(line, "", f"{name}, line 1 (the header)", 0)  # which says that it is damaged
    if header is None or header.get("kind") != KIND:
        raise DataError(f"{name} is not the journal of a session. Start one with itembank session start.")
    version = header.get("schema_version")
    if version != SCHEMA_VERSION:
        raise DataError(
            f"{name}: schema_version must be {SCHEMA_VERSION}, got {version!r}. Go on with the release of itembank "
            f"that wrote it ({header.get('itembank_version', 'unknown')})."
        )
    return _parse_line(line, "", f"{name}, line 1 (the header)", 0)


def _parse_line(line: bytes, previous_check: str, where: str, n_whole: int) -> tuple[dict[str, Any], str]:
    """Read one line, and compare its check with what it must be after the line before."""
    body = line[:-_N_ENDING]
    ending = _ENDING.fullmatch(line[-_N_ENDING:])
    check = _check(previous_check, body)
    record = _object(body + b"}")
    if record is None or ending is None or ending[1].decode("ascii") != check:
        rescue = (
            f"keep its first {n_whole} lines (head -n {n_whole}) as a new journal and tell the later answers again"
            if n_whole
            else "start another session and tell it the answers of this one"
        )
        raise IntegrityError(
            f"{where} is not what was written there. Copy the journal again from where it is whole; or {rescue}."
        )
    return record, check


def _object(text: bytes) -> dict[str, Any] | None:
    """Read a JSON object; None when it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_header(content: bytes, name: str) -> str:
    """Say what a file without one whole line is."""
    if not content:
        return f"{name} is empty, so it is not the journal of a session. Remove it and start the session again."
    return (
        f"{name} holds no whole line, so it is not the journal of a session. If it was to be one, no answer was in it: "
        "remove it and start the session again."
    )


def _json(record: Mapping[str, Any]) -> bytes:
    """Write compact JSON; numbers come back bit for bit, as Python writes the shortest digits that do."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise DataError(f"what is kept in a journal must be JSON without NaN and infinity: {error}.") from error
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, as undecodable bytes of a command line become
        return json.dumps(record, allow_nan=False, separators=(",", ":")).encode("ascii")


def _check(previous_check: str, body: bytes) -> str:
    return hashlib.sha256(previous_check.encode("ascii") + body).hexdigest()[:N_CHECK]
