"""Prose and code that ship with Python: help topics, docstrings and sources of the standard library (PSF licence).

Some topics and modules are kept back for test items and never trained on.
"""

import random
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from pydoc_data import topics

from bytelms_problems import Problem

TEST_MODULES = (
    "abc argparse ast base64 bisect calendar cmd copy csv fileinput fractions gzip heapq imaplib keyword netrc "
    "optparse pprint queue sched shelve statistics textwrap timeit trace"
)
TEST_TOPICS_EVERY = 5  # every fifth topic, in alphabetical order
LONGEST = 400  # bytes of one piece of training text


@dataclass(frozen=True)
class Sources:
    """Pieces of text, printable ASCII and line ends only."""

    prose: tuple[str, ...]
    code: tuple[str, ...]
    test_prose: tuple[str, ...]
    test_code: tuple[str, ...]


def read_sources() -> Sources:
    """Read what is installed with the running Python; the same for the same version."""
    library = Path(sysconfig.get_path("stdlib"))
    modules = {path.stem: _ascii(path.read_text(encoding="utf-8")) for path in sorted(library.glob("*.py"))}
    names = [name for name in modules if not name.startswith("_")]
    kept_modules = TEST_MODULES.split()
    train, test = [one for one in names if one not in kept_modules], [one for one in names if one in kept_modules]
    pages = [_ascii(topics.topics[name]) for name in sorted(topics.topics)]
    kept = range(0, len(pages), TEST_TOPICS_EVERY)
    return Sources(
        prose=tuple(_paragraphs([page for number, page in enumerate(pages) if number not in kept])),
        code=tuple(piece for name in train for piece in _pieces(modules[name])),
        test_prose=tuple(_paragraphs([pages[number] for number in kept])),
        test_code=tuple(piece for name in test for piece in _pieces(modules[name])),
    )


def _ascii(text: str) -> str:
    return re.sub(r"[^\n -~]", "", text.replace("\t", "    "))


def _paragraphs(pages: list[str]) -> list[str]:
    """Paragraphs of running text on one line each, without grammar rules, code and tables."""
    found: dict[str, None] = {}
    for page in pages:
        for paragraph in re.split(r"\n\s*\n", page):
            line = " ".join(paragraph.split())
            if len(line) >= 80 and line[0].isupper() and line[-1] in ".:" and "::=" not in line and "---" not in line:
                found[line] = None
    return list(found)


def _pieces(source: str) -> list[str]:
    """Pieces of code of at most `LONGEST` bytes, cut at line ends; comments and empty lines are dropped."""
    lines = [line.rstrip() for line in source.split("\n")]
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith("#") and len(line) <= 100]
    pieces, piece = [], ""
    for line in lines:
        if len(piece) + len(line) > LONGEST:
            pieces.append(piece.rstrip("\n"))
            piece = ""
        piece += line + "\n"
    return pieces


def continuations(
    rng: random.Random, pieces: tuple[str, ...], *, n: int, before: tuple[int, ...], after: tuple[int, ...], seen: str
) -> list[Problem]:
    """Draw `n` places that are not in the text `seen` in training, half of them inside a word.

    The wrong endings come from other places: of the same last character in every second item.
    """
    places = [_place(rng, piece, before, after) for piece in pieces * 2]
    usable = [place for place in places if place and place[0][-min(before) :] + place[1][: min(after)] not in seen]
    rng.shuffle(usable)
    result = []
    for number, (prompt, rest) in enumerate(usable[:n]):
        length, is_close = after[number % len(after)], rng.random() < 0.5
        others = [r for p, r in usable if r[:2] != rest[:2] and (p[-1] == prompt[-1] or not is_close)]
        if len(others) < 3:
            others, is_close = [r for _, r in usable if r[:2] != rest[:2]], False
        wrong = tuple(dict.fromkeys(one[:length] for one in rng.sample(others, min(8, len(others)))))
        level = ("inside" if prompt[-1].isalpha() else "before") + " a word" + (", alike" if is_close else "")
        result.append(Problem(prompt[-rng.choice(before) :], rest[:length], wrong, level))
    return result


def _place(rng: random.Random, piece: str, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[str, str] | None:
    """Cut one piece of text before or inside a word, with the longest context and ending in one line."""
    character = "[A-Za-z]" if rng.random() < 0.5 else "[ (.=]"
    starts = [match.start() for match in re.finditer(f"(?<={character})[A-Za-z_]", piece)]
    fitting = [
        at for at in starts if max(before) <= at <= len(piece) - max(after) and "\n" not in piece[at : at + max(after)]
    ]
    if not fitting:
        return None
    at = rng.choice(fitting)
    return piece[at - max(before) : at], piece[at : at + max(after)]
