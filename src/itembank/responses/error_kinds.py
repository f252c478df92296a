"""What lost answers may count as, and kinds of errors, told from words of logs and tables."""

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

Errors: TypeAlias = Literal["missing", "wrong", "bounds"]
"""What lost answers count as: nothing, a wrong answer, or whatever makes the interval widest."""

KINDS = ("answer", "no answer", "error", "time-out", "limit", "harness", "judge")
"""Kinds by their code: 0 is an answer. 'no answer' has no reason, 'error' none that is known."""
NO_ANSWER, ERROR = 1, 2

# In this order: a limit of requests is the provider's, and what broke in a container is no fault of the judge.
_SIGNS: Sequence[tuple[str, str]] = (
    ("harness", r"rate.?limit|too many requests|\b(429|5\d\d)\b|infra|harness|docker|container|environment|sandbox"),
    ("time-out", r"time.?d?.?out|time.?limit|time was up|deadline"),
    ("judge", r"judge|grader|grading|scorer|scoring|verifier|unparsed|reward.?file"),
    (
        "limit",
        r"limit|^length$|context.?(length|window|size|overflow)|max.?(tokens|turns|steps|length)|truncated|budget",
    ),
    ("harness", r"setup|connection|network|server|service|unavailable|\bapi\b|cancel|\boom\b|out.?of.?memory|install"),
)
NOT_AN_ERROR = frozenset(
    (
        *("", "0", "0.0", "200", "200.0", "none", "null", "nan", "na", "n/a", "no", "false", "-", "{}", "[]"),
        *("no error", "no errors", "no_error", "noerror", "without error", "no exception"),
        *("ok", "success", "succeeded", "complete", "completed", "done", "finished", "pass", "passed", "scored"),
        *("stop", "stopped", "end_turn", "eos", "stop_sequence", "tool_calls", "graded", "evaluated", "submitted"),
    )
)
"""Texts in a column of errors that say that there was none, in lower case."""
STATUS_COLUMNS = (
    *("status", "state", "exitstatus", "finalstatus", "runstatus", "trialstatus", "finishreason", "stopreason"),
)
"""What others call a column that says by a word how an attempt ended, without case, blanks and underscores."""
ERROR_COLUMNS = (
    *("errors", "errormessage", "errormsg", "errortype", "errorcode", "exception", "exceptioninfo", "exceptiontype"),
    *("httpstatus", "httpcode", "statuscode", "failurereason", "failuremode"),
)
"""The same of one that tells an error: of the run, or of the answer, which is then a wrong one."""
FLAG_COLUMNS = ("errored", "iserrored", "timedout", "istimeout", "hastimedout", "crashed")
"""The same of one that says whether there was an error, as do others whose names end in error: `parse_error`."""
_WORDS = re.compile(
    r"(err|errored|crash(ed)?|time.?d?.?out|infra(structure)?.?failure|oom|rate.?limit(ed)?"
    r"|(?!no.)([\w.-]+ )?[\w.-]*(error|exception)( *[:(].*)?)"
)


def error_kind(value: Any) -> int:
    """Return the code of the kind of error that a value of a log or table tells; 0 where it tells none.

    A text may be a kind of ours, a name of an exception, or a whole message.
    """
    text = "" if value is None else str(value).strip().lower()  # a flag of an error, such as true or 1, is of no kind
    if text in NOT_AN_ERROR:
        return 0
    if text in KINDS:
        return KINDS.index(text)
    return next((KINDS.index(kind) for kind, sign in _SIGNS if re.search(sign, text)), ERROR)


def is_error_word(text: str) -> bool:
    """Whether a word in place of a response says that there is none because of an error: 'timeout', 'error'."""
    return _WORDS.fullmatch(text.strip().lower()) is not None


def is_of_run(text: str) -> bool:
    """Whether words name an error of the run, such as a time-out: an error of no known kind may be the answer's."""
    return error_kind(text) > ERROR


def is_flag(text: str) -> bool:
    """Whether a text in a column of such a name says that there was an error: no other number than 1 does."""
    return error_kind(text) > 0 and re.fullmatch(r"(?!1$)[\d.e+-]+", text.strip().lower()) is None


def is_called(name: str, usual: Sequence[str]) -> bool:
    """Whether a column has one of the usual names, but for case, blanks and underscores."""
    return "".join(letter for letter in name.casefold() if letter.isalnum()) in usual
