"""Judges what a command did with a file that may be damaged: took it, refused it clearly, or failed."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.attacks.running import HUNG, Outcome

ACCEPTED, REFUSED = "accepted", "refused"
SHARES = ("estimate", "low", "high", "truth", "score", "mean_response", "density", "response", "probability")
"""Names of numbers that lie between zero and one wherever they are printed."""
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|panicked at|RUST_BACKTRACE|stack backtrace")
_WARNING = re.compile(r"\.py:\d+: \w*Warning")
_SENTENCE = re.compile(r"^(Error|Aborted)\b.*\w+ \w+", flags=re.MULTILINE)


def verdict(outcome: Outcome) -> str:
    """Judge the streams and the exit code of one command: `unclear` is an exit code that is none of ours, too."""
    text = outcome.err + outcome.escaped
    defects = {"hang": outcome.code == HUNG, "death": outcome.code < 0, "internal error": "run with --debug" in text}
    defects |= {"traceback": _TRACEBACK.search(text), "warning": _WARNING.search(text)}
    if found := [name for name, is_found in defects.items() if is_found]:
        return found[0]
    if outcome.code in {0, 3} or (outcome.code == 1 and outcome.out.startswith("FAIL: ")):  # the verdict of a gate
        return ACCEPTED
    return REFUSED if outcome.code in {1, 2, 4, 5} and _SENTENCE.search(outcome.err) else "unclear"


def problem_of_json(text: str) -> str:
    """Say what no result may hold: a number that JSON has not, or a share outside [0, 1]; empty when all is well."""
    try:
        content = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        return f"not JSON: {error}"
    for name, value in _numbers(content):
        if name == "estimate" and value is None:
            return "an estimate that is none"
        if name in SHARES and value is not None and not -1e-9 <= value <= 1.0 + 1e-9:
            return f"{name} = {value}"
    return ""


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _numbers(content: Any, name: str = "") -> Iterator[tuple[str, float | None]]:
    """Yield every number, and every null, with the key it stands under; ends of differences are no shares."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _numbers(value, f"difference's {key}" if "difference" in content else key)
    elif isinstance(content, list):
        for value in content:
            yield from _numbers(value, name)
    elif content is None or (isinstance(content, int | float) and not isinstance(content, bool)):
        yield name, content


def contents(folder: Path) -> dict[str, str]:
    """Digest of every file under a folder, by its path there."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
