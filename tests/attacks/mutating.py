"""Damages bytes by chance: bits and blocks of any file, words and structure of text."""

import re
from collections.abc import Callable, Sequence

import numpy as np

Mutation = Callable[[bytes, np.random.Generator, Sequence[bytes]], bytes]
"""Makes other bytes of these, with the bytes of other files at hand."""

ODD_NUMBERS = (
    *(b"NaN", b"nan", b"Infinity", b"-Infinity", b"inf", b"1e999", b"-1e999", b"2.0", b"-1", b"-0.0", b"0x1", b"1_0"),
    *(b"1e-320", b"007", b"+1", b"1.", b".5", b"1,5", b"1e5", b"true", b"null", b"[]", b"{}", b'""', b'"1"', b" "),
    *(b"9" * 400, b"0." + b"1" * 400, b"9223372036854775808", b"-9223372036854775809", b"4294967297", b"1e308"),
    *("１".encode(), "٣".encode(), "½".encode()),
)
"""In place of a number."""
ODD_TEXTS = (
    *(b"\\ud800", b"\\u0000", b"\\u202e", b"\\ud83d\\ude00", "\ud800".encode("utf-8", "surrogatepass"), b"\xff\xfe"),
    *(b"\x1b[31m", b"\x1b]0;owned\x07", b"<script>alert(1)</script>", b"[red]", b"[/red]", b"=1+1", b"../../x", b"/"),
    *(b"\x00", b"\n", b"\r", b"\t", b'"', b"'", b",", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"$\\frac{"),
    *(b"x" * 20_000, b"__class__", b"%s%n", b"{0}", b"${HOME}", b"", b"model_id", b"item_id", b"overall", b"NaN"),
)
"""In place of a word, or anywhere."""
DEEP = b"[" * 100_000
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w/-]*")


def mutate(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    """Damage bytes once, now and then twice or three times."""
    mutations = TEXT + BYTES if _is_text(content) else BYTES
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        content = mutations[rng.integers(len(mutations))](content, rng, others)
    return content


def flip_bit(content: bytes, position: int) -> bytes:
    """Turn over one bit, counted from the first of the first byte."""
    changed = bytearray(content)
    changed[position // 8] ^= 1 << position % 8
    return bytes(changed)


def _is_text(content: bytes) -> bool:
    return b"\x00" not in content[:1000]


def _span(content: bytes, rng: np.random.Generator, longest: int = 64) -> slice:
    start = int(rng.integers(len(content) + 1))
    return slice(start, start + int(rng.integers(1, longest + 1)))


def _swap(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    a, b, c, d = sorted(int(one) for one in rng.integers(len(content) + 1, size=4))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _span_made(longest: int, make: Callable[[bytes], bytes]) -> Mutation:
    """Put something else in the place of a piece of at most so many bytes."""

    def mutated(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
        place = _span(content, rng, longest)
        return content[: place.start] + make(content[place]) + content[place.stop :]

    return mutated


def _set_byte(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    place = _span(content, rng, 1)
    return content[: place.start] + rng.bytes(1) + content[place.stop :]


def _inserted(make: Callable[[np.random.Generator], bytes]) -> Mutation:
    def mutated(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
        place = int(rng.integers(len(content) + 1))
        return content[:place] + make(rng) + content[place:]

    return mutated


def _splice(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    other = others[rng.integers(len(others))]
    return content[: int(rng.integers(len(content) + 1))] + other[int(rng.integers(len(other) + 1)) :]


def _own(pattern: re.Pattern[bytes], content: bytes, rng: np.random.Generator) -> bytes:
    """Put one of the file's own words in the place of another: a key twice, an id for a name."""
    return _in_place_of(pattern, pattern.findall(content), content, rng)


def _deepen(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    """Put a value of a hundred thousand brackets in the place of a number."""
    closed = DEEP + b"]" * len(DEEP) if rng.integers(2) else DEEP
    return _in_place_of(_NUMBER, (closed,), content, rng)


def _lines(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    """Leave a line out, repeat it, or move it."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    one = lines.pop(int(rng.integers(len(lines))))
    for _ in range(int(rng.integers(3))):
        lines.insert(int(rng.integers(len(lines) + 1)), one)
    return b"".join(lines)


def _in_place_of(
    pattern: re.Pattern[bytes], values: Sequence[bytes], content: bytes, rng: np.random.Generator
) -> bytes:
    if not (found := list(pattern.finditer(content))):
        return content
    place = found[rng.integers(len(found))]
    return content[: place.start()] + values[rng.integers(len(values))] + content[place.end() :]


def _flip(content: bytes, rng: np.random.Generator, others: Sequence[bytes]) -> bytes:
    return flip_bit(content, int(rng.integers(8 * len(content)))) if content else content


BYTES: tuple[Mutation, ...] = (
    *(_flip, _flip, _flip, _set_byte),
    lambda content, rng, _: content[: int(rng.integers(len(content) + 1))],  # cut
    _span_made(64, lambda _: b""),
    _inserted(lambda rng: rng.bytes(int(rng.integers(1, 17)))),
    _span_made(64, lambda piece: b"\x00" * len(piece)),
    _span_made(256, lambda piece: piece + piece),
    *(_swap, _splice),
    lambda content, rng, others: others[rng.integers(len(others))],  # a whole other file
)
TEXT: tuple[Mutation, ...] = (
    *[lambda content, rng, _: _in_place_of(_NUMBER, ODD_NUMBERS, content, rng)] * 3,
    *[lambda content, rng, _: _in_place_of(_WORD, ODD_TEXTS, content, rng)] * 2,
    lambda content, rng, _: _own(_WORD, content, rng),
    lambda content, rng, _: _own(_NUMBER, content, rng),
    _inserted(lambda rng: ODD_TEXTS[rng.integers(len(ODD_TEXTS))]),
    *(_lines, _lines, _deepen),
)
