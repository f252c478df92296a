"""Specs in TOML files: the keys of a file are the fields of a spec, its tables the specs within."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from itembank.errors import ParameterError, did_you_mean, shown
from itembank.files.documents import read_toml
from itembank.methods import MethodTable

Named: TypeAlias = Mapping[str, tuple[MethodTable[Any], str]]
"""By field: the methods that its tables are specs of, and the key of such a table that names the method."""

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def read_choices(path: Path, kind: type, named: Named | None = None) -> dict[str, Any]:
    """Read some fields of a spec from a TOML file.

    A field that is a spec itself is a table, ``[budget]``; one that is a method of a table of methods (`named`) is its
    name, or a table that names it and has its choices. Refusals name the file and the key.
    """
    content = read_toml(path)
    with errors_name(path):
        return fields_of(content, kind, named or {})


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Let refusals of what stands in a file begin with its name."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from error


def members_of(hint: Any) -> list[Any]:
    """Return the members of a union, of whatever depth; of another type itself."""
    if get_origin(hint) in {Union, UnionType}:
        return [member for one in get_args(hint) for member in members_of(one)]
    return [hint]


def fields_of(content: Mapping[str, Any], kind: Any, named: Named, where: str = "") -> dict[str, Any]:
    """Return the fields of a table, checked, as the spec takes them; `where` is its name, empty for the whole file.

    Raises as `read_choices`, but for the name of the file.
    """
    known = {one.name: one for one in fields(kind) if one.init}
    unknown = [key for key in content if key not in known]
    what = f"[{where}]" if where else "the file"
    if unknown and not known:
        raise ParameterError(f"{what} must be empty, for there is nothing to choose, got {shown(unknown)}.")
    if unknown:
        raise ParameterError(
            f"keys of {what} must be among {shown(list(known), len(known))}, got {shown(unknown)}."
            f"{did_you_mean(unknown, known)}"
        )
    needed = [name for name, one in known.items() if one.default is MISSING and one.default_factory is MISSING]
    missing = [name for name in needed if name not in content]
    if where and missing:
        raise ParameterError(f"{what} needs {shown(missing, len(missing))} as well.")
    hints = get_type_hints(kind)
    place = f"{where}." if where else ""
    return {key: _value(value, hints[key], f"{place}{key}", named.get(key)) for key, value in content.items()}


def _value(value: Any, hint: Any, where: str, methods: tuple[MethodTable[Any], str] | None) -> Any:
    """Return a value as a field of this type takes it."""
    if methods is not None and isinstance(value, dict):
        return _method(value, *methods, where)
    members = members_of(hint)
    member = next((one for one in members if _fits(value, one)), None)
    inner = get_args(member)
    if member is None:
        raise ParameterError(f"{where} must be {_words(members)}, got {value!r:.100}.")
    if isinstance(value, list | tuple):
        return tuple(_value(one, inner[0], where, methods) for one in value)
    if isinstance(value, dict) and inner:
        return {key: _value(one, inner[1], f"{where}.{key}", None) for key, one in value.items()}
    if isinstance(value, dict):
        return member(**fields_of(value, member, {}, where))
    return float(value) if member is float else value


def _fits(value: Any, member: Any) -> bool:
    """Whether a value is of one type of a union."""
    origin = get_origin(member) or member
    if origin is Literal:
        return value in get_args(member)
    if isinstance(value, dict):
        return is_dataclass(member) or issubclass(origin, Mapping)
    if isinstance(value, list | tuple):
        return origin is tuple
    return type(value) is member or (member is float and type(value) is int)


def _method(content: Mapping[str, Any], table: MethodTable[Any], key: str, where: str) -> Any:
    """Make the spec of a method from the table that names it."""
    name = content.get(key)
    if not isinstance(name, str) or name not in table.kinds:
        raise ParameterError(f"{where}.{key}: {table.refusal(name)}")
    kind = table.kinds[name]
    return kind(**fields_of({one: value for one, value in content.items() if one != key}, kind, {}, where))


def _words(members: Sequence[Any]) -> str:
    """Say what a value must be."""
    words = [word for member in members if member is not NoneType for word in _words_of(member)]
    *most, last = dict.fromkeys(words)
    return f"{', '.join(most)} or {last}" if most else last


def _words_of(member: Any) -> list[str]:
    origin, inner = get_origin(member), get_args(member)
    if origin is Literal:
        return [repr(one) for one in inner]
    if origin is tuple:
        return [f"a list, each of it {_words(members_of(inner[0]))}"]
    return [_WORDS.get(member, "a table")]
