"""Problems with one right answer that can be drawn without end: sums, strings, brackets, spelling, plurals.

Both the training text and the test items are drawn here; the `keys` of test items are never drawn for training.
"""

import random
import string
from collections.abc import Callable
from dataclasses import dataclass

from bytelms_words import PLURALS, SPELLING

BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}
WORDS = SPELLING.split()


@dataclass(frozen=True)
class Problem:
    """A prompt, its right answer (both without the line end) and the wrong answers that tempt."""

    prompt: str
    answer: str
    wrong: tuple[str, ...]  # nearest first, at least one
    level: str  # the class of difficulty
    twin: str = ""  # a prompt that asks the same the other way round

    @property
    def keys(self) -> set[str]:
        """The prompts that must not be in the training text when this is a test item."""
        return {self.prompt, self.twin or self.prompt}


Draw = Callable[[random.Random, int], Problem]


def _other_numbers(rng: random.Random, answer: int) -> tuple[str, ...]:
    """Wrong numbers of as many digits as the answer: near ones, or any (easier), or some of both."""
    low, high = (10 ** (len(str(answer)) - 1) if answer > 9 else 0), 10 ** len(str(answer)) - 1
    near = [answer + step for step in (-10, -2, -1, 1, 2, 10)]
    rng.shuffle(near)
    n_near = rng.choice((0, 1, 3))
    anywhere = [rng.randint(low, high) for _ in range(12)]
    numbers = [number for number in near if low <= number <= high][:n_near] + anywhere
    return tuple(str(number) for number in dict.fromkeys(numbers) if number != answer)


def _digits(rng: random.Random, n_digits: int) -> int:
    return rng.randint(10 ** (n_digits - 1) if n_digits > 1 else 0, 10**n_digits - 1)


def addition(rng: random.Random, n_digits: int) -> Problem:
    a, b = _digits(rng, n_digits), _digits(rng, n_digits)
    carries = "carry" if any((a // p % 10) + (b // p % 10) > 9 for p in (1, 10, 100)) else "plain"
    level = f"{n_digits} digits, {carries}"
    return Problem(f"{a}+{b}=", str(a + b), _other_numbers(rng, a + b), level, f"{b}+{a}=")


def subtraction(rng: random.Random, n_digits: int) -> Problem:
    a, b = sorted((_digits(rng, n_digits), _digits(rng, n_digits)), reverse=True)
    return Problem(f"{a}-{b}=", str(a - b), _other_numbers(rng, a - b), f"{n_digits} digits")


def comparison(rng: random.Random, n_digits: int) -> Problem:
    """Draw two different numbers; half of the pairs of two digits and more share their first digit."""
    a = b = _digits(rng, n_digits)
    while a == b:
        b = _digits(rng, n_digits)
        if n_digits > 1 and rng.random() < 0.5:
            b = int(str(a)[0] + str(b)[1:])
    alike = "same first digit" if n_digits > 1 and str(a)[0] == str(b)[0] else "other first digit"
    level = f"{n_digits} digits, {alike}"
    return Problem(f"max {a} {b}>", str(max(a, b)), (str(min(a, b)),), level, f"max {b} {a}>")


def _letters(rng: random.Random, length: int, alphabet: str = string.ascii_lowercase) -> str:
    return "".join(rng.choice(alphabet) for _ in range(length))


def _misprints(rng: random.Random, text: str, alphabet: str = string.ascii_lowercase) -> tuple[str, ...]:
    """Three strings with one letter replaced, two neighbours swapped, or all letters shuffled."""
    made: dict[str, None] = {}
    ways = ["replace", "swap", "shuffle"]
    while len(made) < 3:
        way, at = ways[len(made)] if rng.random() < 0.7 else "replace", rng.randrange(len(text))
        letters = list(text)
        if way == "replace":
            letters[at] = rng.choice(alphabet)
        elif way == "swap":
            letters[at - 1], letters[at] = letters[at], letters[at - 1]
        else:
            rng.shuffle(letters)
        if "".join(letters) != text:
            made["".join(letters)] = None
    return tuple(made)


def copying(rng: random.Random, length: int) -> Problem:
    text = _letters(rng, length)
    return Problem(f"copy {text}>", text, _misprints(rng, text), f"{len(text)} letters")


def reversal(rng: random.Random, length: int) -> Problem:
    text = _letters(rng, length)
    while text == text[::-1]:
        text = _letters(rng, length)
    answer = text[::-1]
    wrong = dict.fromkeys((text, *_misprints(rng, answer)))
    wrong.pop(answer, None)
    return Problem(f"reverse {text}>", answer, tuple(wrong), f"{length} letters")


def sorting(rng: random.Random, length: int) -> Problem:
    text = "".join(rng.sample(string.ascii_lowercase, length))
    answer = "".join(sorted(text))
    wrong = dict.fromkeys((*_misprints(rng, answer), text))
    wrong.pop(answer, None)
    return Problem(f"sort {text}>", answer, tuple(wrong), f"{length} letters")


def brackets(rng: random.Random, n_open: int) -> Problem:
    """Draw brackets of which `n_open` are still open; closing some again in between makes it harder."""
    opened: list[str] = []
    shown, n_closed = "", 0
    while len(opened) < n_open:
        if opened and n_closed < 2 and rng.random() < 0.25:
            shown += BRACKETS[opened.pop()]
            n_closed += 1
        else:
            opened.append(rng.choice(list(BRACKETS)))
            shown += opened[-1]
    answer = "".join(BRACKETS[one] for one in reversed(opened))
    wrong = dict.fromkeys((answer[::-1], *_misprints(rng, answer, "".join(BRACKETS.values()))))
    wrong.pop(answer, None)
    return Problem(f"close {shown} ", answer, tuple(wrong), f"{n_open} open, {'some' if n_closed else 'none'} closed")


def counting(rng: random.Random, length: int) -> Problem:
    text = _letters(rng, length, "abc")
    letter = rng.choice("abc")
    count = text.count(letter)
    near = [count - 1, count + 1, count + 2, count - 2, rng.randint(0, length)]
    wrong = dict.fromkeys(str(one) for one in near if 0 <= one <= 9 and one != count)
    return Problem(f"count {letter} {text}>", str(min(count, 9)), tuple(wrong), f"{length} letters")


def spelling(rng: random.Random, _level: int) -> Problem:
    word = rng.choice(WORDS)
    size = "short" if len(word) <= 5 else "middle" if len(word) <= 7 else "long"
    wrong = tuple("-".join(one) for one in _misprints(rng, word))
    return Problem(f"spell {word}>", "-".join(word), wrong, size)


def plural(rng: random.Random, _level: int) -> Problem:
    rule = rng.choice(list(PLURALS))
    word = rng.choice(PLURALS[rule].split())
    stem = word.removesuffix("fe").removesuffix("f") if rule == "ves" else word[:-1]
    answer = {"s": word + "s", "es": word + "es", "ies": stem + "ies", "ves": stem + "ves"}.get(rule, word + "s")
    wrong = dict.fromkeys((word + "s", word + "es", stem + "ies", stem + "ves"))
    wrong.pop(answer, None)
    return Problem(f"one {word}, two ", answer, tuple(wrong), rule)


@dataclass(frozen=True)
class Family:
    """Problems of one kind: how to draw one, and the levels (digits, letters, brackets) there are."""

    draw: Draw
    levels: tuple[int, ...]
    domain: str


FAMILIES = {
    "addition": Family(addition, (1, 1, 2, 2, 3), "arithmetic"),
    "subtraction": Family(subtraction, (1, 1, 2, 2), "arithmetic"),
    "comparison": Family(comparison, (1, 2, 3, 4), "arithmetic"),
    "copying": Family(copying, (2, 3, 4, 6, 8), "symbols"),
    "reversal": Family(reversal, (2, 3, 4, 5, 6), "symbols"),
    "sorting": Family(sorting, (2, 3, 4, 5, 6), "symbols"),
    "brackets": Family(brackets, (2, 3, 4, 5, 6), "symbols"),
    "counting": Family(counting, (3, 4, 6, 8), "symbols"),
    "spelling": Family(spelling, (0,), "words"),
    "plural": Family(plural, (0,), "words"),
}
