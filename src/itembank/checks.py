"""Checks of choices, in one voice: what must hold, and what came."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

from itembank.errors import DataError, ParameterError, did_you_mean, quoted, shown

Spec = TypeVar("Spec", bound=Any)


def list_of_ids(name: str, given: object) -> list[str]:
    """Return ids or names, in a list, tuple, set, array or column, as a list; refuse what is none of these."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ParameterError(f"{name} must be a list of ids, got {quoted(given)}.")
    return [str(one) for one in given]


def is_pattern(name: str) -> bool:
    """Whether Polars takes the name of a column for a pattern of names, even where that column alone is asked."""
    return name.startswith("^") and name.endswith("$")


def check_names(source: str, names: Iterable[str]) -> None:
    """Refuse names of columns that are patterns."""
    if patterns := [*filter(is_pattern, names)]:
        raise DataError(f"{source}: no column may be called ^...$, as patterns are, got {shown(patterns)}. Rename it.")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number, of Python or numpy; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number, of Python or numpy; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_whole(name: str, value: object, *, least: int, word: str | None = None) -> None:
    """Refuse what is neither a whole number of at least `least` nor the word."""
    if not (_is_word(value, word) or (is_whole(value) and value >= least)):
        raise ParameterError(f"{name} must be a whole number >= {least}{_or(word)}, got {value!r}.")


def check_positive(name: str, value: object, *, word: str | None = None) -> None:
    """Refuse what is neither a finite number above zero nor the word."""
    if not (_is_word(value, word) or (is_number(value) and 0.0 < value < math.inf)):
        raise ParameterError(f"{name} must be a finite number > 0{_or(word)}, got {value!r}.")


def check_not_negative(name: str, value: object) -> None:
    """Refuse what is no finite number of at least zero."""
    if not (is_number(value) and 0.0 <= value < math.inf):
        raise ParameterError(f"{name} must be a finite number >= 0, got {value!r}.")


def check_fraction(name: str, value: object, *, whole: bool = False, is_score: bool = False) -> None:
    """Refuse what does not lie between 0 and 1; with `whole`, 1 is allowed. Of a score the error tells points."""
    if not (is_number(value) and (0.0 < value < 1.0 or (whole and value == 1.0))):
        wanted = "above 0 and at most 1" if whole else "between 0 and 1"
        meant = from_points(value) if is_score else from_percent(value)
        raise ParameterError(f"{name} must be {wanted}, got {value!r}.{meant}")


def from_points(value: object) -> str:
    """Return the sentence for who gave points where scores run from 0 to 1; nothing for what are none."""
    if not (is_number(value) and 1.0 < value <= 100.0):
        return ""
    return f" Scores run from 0 to 1: {value:g} points are {value / 100.0:g}."


def from_percent(value: object) -> str:
    """Return the sentence for who gave a percentage; nothing for what is none."""
    return f" {value:g} % is {value / 100.0:g}." if is_number(value) and 10.0 <= value < 100.0 else ""


def check_one_of(name: str, value: object, allowed: Collection[str]) -> None:
    """Refuse another word."""
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {shown(tuple(allowed), limit=len(allowed))}, got {value!r}.")


def with_choices(spec: Spec, choices: Mapping[str, Any]) -> Spec:
    """Return a spec with some fields, or fields of specs within it, given by name; an unknown name is refused."""
    own = [one.name for one in fields(spec)]
    kinds: dict[str, Any] = {one.name: one.default_factory for one in fields(spec)}
    parts = {name: fields(kind) for name, kind in kinds.items() if is_dataclass(kind)}
    within = {one.name: name for name, inner in parts.items() for one in inner if one.name not in own}
    known = [*own, *within]
    unknown = [name for name in choices if name not in known]
    if unknown:
        raise ParameterError(
            f"choices by name must be fields of {type(spec).__name__}, {shown(known, limit=len(known))}, got "
            f"{shown(unknown)}.{did_you_mean(unknown, known)}"
        )
    given: dict[str, dict[str, Any]] = {}  # by the spec that they are fields of
    for name, value in choices.items():
        given.setdefault(within.get(name, ""), {})[name] = value
    changed = {name: replace(getattr(spec, name), **values) for name, values in given.items() if name}
    return replace(spec, **{**changed, **given.get("", {})}) if choices else spec


def _is_word(value: object, word: str | None) -> bool:
    return word is not None and isinstance(value, str) and value == word


def _or(word: str | None) -> str:
    return "" if word is None else f" or {word!r}"
