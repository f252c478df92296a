"""Attack: names as strangers might choose them, through every command that prints or draws them."""

import csv
import io
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from tests.attacks.judging import ACCEPTED, REFUSED, verdict
from tests.attacks.running import Outcome, run_here, run_well
from tests.attacks.workplace import FAST
from tests.cli.session.loops import FAST as FAST_SESSION

NAMES = (
    *(
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "two\nlines",
        "carriage\rreturn",
        "tab\there",
        "nul\x00byte",
        "bell\x07",
    ),
    *("\u202egpj.exe", "\u200bzero width", "\u2028line", "[red]markup[/red]", "[link=file:///]x[/link]", "[/]"),
    *("in\u200bside", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;", "]]>"),
    *("../../escape", "/etc/passwd", "~"),
    *("=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "--help", "-", "$\\frac{", "$x$", "_{", "%s%n", "{0}", "${HOME}"),
    *("a,b", 'quote"', "'", ";", "NaN", "null", "overall", "x" * 20_000, "日本語", "e\u0301", "\U0001f600"),
)
SCENARIOS = ("\x1b[31mma\nth", "<script>law</script> $\\frac{", "\u202e[red]code")
LONGEST_MESSAGE = 6_000
"""Characters of standard error: a name has up to 20,000."""
_DRIVING = {"Cc", "Cf", "Zl", "Zp"}
"""Unicode categories of characters that can drive a terminal, or turn a line round."""


def make_hostile(folder: Path) -> None:
    """Import, calibrate and select among models, items and scenarios of hostile names, all in a folder."""
    rng = np.random.default_rng(8)
    right = rng.random((len(NAMES), 1)) > rng.random(len(NAMES))
    rows = [
        {"model_id": model, "item_id": item, "scenario": SCENARIOS[j % 3], "response": int(right[i, j])}
        for i, model in enumerate(NAMES)
        for j, item in enumerate(NAMES)
    ]
    n = len(NAMES)
    new = [{**row, "model_id": f"new {row['model_id']}", "flops": 1.0} for row in rows[: 2 * n]]
    for name, some in (("all", rows), ("new", new), ("base", rows[:n]), ("cand", rows[n : 2 * n])):
        text = "".join(json.dumps(row) + "\n" for row in some)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    for words in (
        ("import", "all.jsonl", "-o", "all.parquet"),
        ("calibrate", "all.parquet", "-o", "bank", "--item-model", "2pl", "--no-folds"),
        ("select", "bank", "-n", "9", "--method", "random", "-o", "selection.json"),
        ("bank", "retire", "bank", NAMES[0], NAMES[2], "--reason", NAMES[1], "-o", "retired"),
        ("session", "start", "bank", "-o", "run.jsonl", "--model-id", NAMES[0], "--max-items", "9", *FAST_SESSION),
    ):
        run_well(words, folder)


COMMANDS = (
    *(("info", "bank"), ("info", "retired", "--log"), ("info", "bank", "retired")),
    ("select", "bank", "-n", "45", "--method", "random"),
    ("estimate", "bank", "new.jsonl", *FAST),
    ("compare", "bank", "new.jsonl", "--method", "p-irt", "--target", "all"),
    ("session", "status", "run.jsonl"),
    ("replay", "bank", "new.jsonl", "--max-items", "2", *FAST_SESSION),
    ("study", "homogeneity", "bank"),
    ("study", "weights", "bank", "selection.json"),
    *(("check", "bank"), ("check", "bank", "new.jsonl")),
    ("gate", "base.jsonl", "cand.jsonl", "--margin", "0.6", "--estimand", "run"),
    ("gate", "start", "base.jsonl", "--margin", "0.6", "-o", "gate"),
    ("gate", "next", "gate", "cand.jsonl"),
)
"""With every `--format`."""
MESSAGES = (
    ("select", "bank", "-n", "45", "--method", "random", "--ids", "list"),
    *(("session", "ask", "run.jsonl", "-n", "9"), ("session", "ask", "run.jsonl", "-n", "9", "--format", "table")),
    ("session", "tell", "run.jsonl", "--response", "1", "--", NAMES[0]),
    ("session", "tell", "run.jsonl", "--response", "7", "--", "x" * 20_000),
    ("session", "tell", "run.jsonl", "--response", "1", "--", "\x1b[31mnot there"),
    ("import", "all.jsonl", "new.jsonl", "--model-id", "\x1b[31mone", "-o", "one.parquet"),
    ("import", "\x1b[31mnot there", "-o", "one.parquet"),
    ("compare", "bank", "new.jsonl", "--model", "\x1b[31mnot there", "--model", "\u202eneither"),
    ("gate", "next", "gate", "--command", "echo {item_id}", "--model-id", NAMES[0]),
    ("gate", "base.jsonl", "cand.jsonl", "--margin", "0.6", "--github", "--junit", "gate.xml"),
)
"""Whose words to people are looked at."""
FIGURES = (("study", "homogeneity", "bank"), ("study", "weights", "bank", "selection.json"))
PAGES = (
    *(("report", "bank", "-o", "page.html"), ("report", "run.jsonl", "-o", "page.html")),
    ("estimate", "bank", "new.jsonl", *FAST, "--report", "page.html"),
    ("compare", "bank", "new.jsonl", "--method", "p-irt", "--report", "page.html"),
    ("check", "bank", "--report", "page.html"),
    ("gate", "base.jsonl", "cand.jsonl", "--margin", "0.6", "--estimand", "run", "--report", "page.html"),
)
ACTIVE = ("<script>alert", "<script>law", "<img src=x", "\x1b", "\x00", "\x07")
"""What no page may hold as it stands."""


def problems(folder: Path) -> list[str]:
    """Run every command on the hostile names, and say what is wrong with its output."""
    found = []
    for command in COMMANDS:
        for form in ("table", "json", "csv"):
            outcome = run_here((*command, "--format", form), folder=folder)
            found += [f"{command} {form}: {one}" for one in _of_output(outcome, form) if one]
    for command in MESSAGES:
        found += [f"{command}: {one}" for one in _of_message(run_here(command, folder=folder)) if one]
    for command in FIGURES:
        outcome = run_here((*command, "--figure", "figure.svg"), folder=folder)
        found += [f"{command}: {one}" for one in (*_of_message(outcome), _of_figure(folder / "figure.svg")) if one]
    page = folder / "page.html"
    for command in PAGES:
        outcome = run_here(command, folder=folder)
        found += [f"{command}: {one}" for one in _of_message(outcome) if one]
        text = page.read_text(encoding="utf-8") if page.is_file() else f"{ACTIVE[0]} no page: {outcome.err}"
        found += [f"{command}: a page with {one!r}: {text[:300]}" for one in ACTIVE if one in text]
        page.unlink(missing_ok=True)
    return found


def _of_output(outcome: Outcome, form: str) -> Iterator[str]:
    yield from _of_message(outcome)
    if verdict(outcome) == REFUSED:
        return
    if form == "table":
        yield _driving(outcome.out)
        return
    try:
        names = set(_names_in(json.loads(outcome.out)) if form == "json" else _names_of(outcome.out))
    except (ValueError, csv.Error) as error:
        yield f"no {form}: {error}"
        return
    known = {*NAMES, *SCENARIOS, *(f"new {name}" for name in NAMES), "overall"}
    yield f"names that nobody gave: {sorted(names - known)[:3]}" if names - known else ""


def _of_message(outcome: Outcome) -> Iterator[str]:
    found = verdict(outcome)
    yield "" if found in {ACCEPTED, REFUSED} else f"{found}: {outcome.err[-600:]}{outcome.escaped[-1200:]}"
    yield _driving(outcome.err)
    if len(outcome.err) > LONGEST_MESSAGE:
        yield f"a message of {len(outcome.err)} characters: {outcome.err[:200]}"


def _driving(text: str) -> str:
    found = {letter for letter in text if letter != "\n" and unicodedata.category(letter) in _DRIVING}
    return f"characters that drive a terminal: {sorted(map(ascii, found))}" if found else ""


KEYS = ("model_id", "item_id", "scenario", "target", "model_a", "model_b")


def _names_in(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        yield from (value for key, value in content.items() if key in KEYS and isinstance(value, str))
        for value in content.values():
            yield from _names_in(value)
    elif isinstance(content, list):
        for value in content:
            yield from _names_in(value)


def _names_of(text: str) -> Iterator[str]:
    csv.field_size_limit(10**6)
    for row in csv.DictReader(io.StringIO(text, newline="")):
        yield from (row[key] for key in KEYS if row.get(key))


def _of_figure(path: Path) -> str:
    """Say what is wrong with a drawing: no XML, or something in it that a browser would run."""
    try:
        root = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 (our own file; that it parses is the test)
    except (ET.ParseError, OSError, ValueError) as error:
        return f"no SVG: {error}"
    active = [one.tag for one in root.iter() if str(one.tag).rpartition("}")[2] in {"script", "img", "foreignObject"}]
    handlers = [name for one in root.iter() for name in one.attrib if name.startswith("on")]
    return f"an SVG with {active + handlers}" if active or handlers else ""
