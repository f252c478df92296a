"""How alike two names of language models are: leaderboards write the same model in many ways.

A name is taken apart into words, numbers, sizes, a date and how the model is stored. Nothing here decides that two
names are one model: it gives a likeness and says what differs.
"""

import re
from dataclasses import dataclass

WORDS = {"ins": "instruct", "inst": "instruct", "it": "instruct", "med": "medium"}
"""Short words, and what they stand for."""
MAKERS = frozenset(
    (
        *("ai", "anthropic", "alibaba", "allenai", "amazon", "baidu", "bigcode", "cohere", "cohereforai", "databricks"),
        *("google", "meta", "metaai", "microsoft", "mistralai", "moonshotai", "nousresearch", "nvidia", "openai"),
        *("salesforce", "snowflake", "thudm", "tiiuae", "xai", "zai"),
    )
)
"""Words that say who made a model, not which."""
STORED = frozenset(("awq", "bnb", "gguf", "ggml", "gptq", "hf", "quantized", "safetensors"))
"""Words of numbers' precision and of files, which leave the model what it is but for a little."""

ATTEMPTS = re.compile(r"\(n=\d+\)")
STORED_AS = re.compile(r"\b(?:q\d(?:_[a-z0-9]+)*|[48]-?bit|b?fp?(?:8|16|32)|int[48]|exl2)\b")
VERSION = re.compile(r"(?<![\d.])(\d)[-_p](\d)(?![\d.]|[bkmx]\b|x\d)")
DATE = re.compile(
    r"(?<!\d)(?:(20\d\d)[-_]?(0[1-9]|1[0-2])[-_]?([0-3]\d)|(0[1-9]|1[0-2])([0-3]\d)|(2[3-9])(0[1-9]|1[0-2]))(?!\d)"
)
TOKEN = re.compile(r"\d+x\d+(?:\.\d+)?b|[ae]?\d+(?:\.\d+)?[bk](?![a-z0-9])|\d+(?:\.\d+)*|[a-z]+")
SIZE = re.compile(r"(?:\d+x)?[ae]?\d+(?:\.\d+)?b")

UNDATED, RESTORED = 0.9, 0.95
"""Likeness that is left where one name alone has a date; where only precision or files differ."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name taken apart."""

    words: frozenset[str]  # Words and numbers, makers left out
    sizes: frozenset[str]  # Such as '7b' and '8x7b'
    date: tuple[str, str, str]  # (year, month, day): Of the release or snapshot, '' for what the name does not say
    stored: frozenset[str]  # Words of precision and files

    @classmethod
    def of(cls, name: str) -> "ModelName":
        """Take a name apart; case, punctuation, order and maker do not matter."""
        text = ATTEMPTS.sub(" ", name.lower()).rsplit("/", 1)[-1].replace("+", " plus ")
        stored = set(STORED_AS.findall(text))
        text = STORED_AS.sub(" ", text)
        found = DATE.search(text)
        date = _date(found) if found else ("", "", "")
        text = VERSION.sub(r"\1.\2", DATE.sub(" ", text))
        tokens = {WORDS.get(token, token) for token in TOKEN.findall(text)}
        stored |= tokens & STORED
        sizes = {token for token in tokens if SIZE.fullmatch(token)}
        words = tokens - sizes - STORED - {"v"}  # of v0.1
        return cls(frozenset(words - MAKERS or words), frozenset(sizes), date, frozenset(stored))


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two names are."""

    # 1 where all that names a model is the same, however it is written; 0 where the two cannot be one model.
    score: float
    differs: str  # What one name has and the other has not; empty for nothing


def likeness(one: ModelName, other: ModelName) -> Likeness:
    """Compare two names.

    The score is the share of their words, numbers and sizes that both have, a tenth less where one alone has a date,
    and a twentieth less where precision or files differ. Names with other sizes, or other dates, are two models.
    """
    if (one.sizes and other.sizes and one.sizes != other.sizes) or not all(
        mine == theirs or not (mine and theirs) for mine, theirs in zip(one.date, other.date, strict=True)
    ):
        return Likeness(0.0, "size" if one.sizes != other.sizes else "date")
    mine, theirs = one.words | one.sizes, other.words | other.sizes
    score = len(mine & theirs) / max(len(mine | theirs), 1)
    differs = sorted(mine ^ theirs)
    if any(one.date) != any(other.date):
        score *= UNDATED
        differs.append("date")
    if one.stored != other.stored:
        score *= RESTORED
        differs.extend(sorted(one.stored ^ other.stored))
    return Likeness(score, " ".join(differs))


def _date(found: re.Match[str]) -> tuple[str, str, str]:
    """Year, month and day of a match of `DATE`: 2024-06-20, 0613 (a month and day) or 2407 (a year and month)."""
    year, month, day, own_month, own_day, short_year, short_month = (part or "" for part in found.groups())
    if short_year:
        return f"20{short_year}", short_month, ""
    return year, month or own_month, day or own_day
