"""The keys of every JSON output of the command line: their meaning, described once, and the outputs that have them.

All of it is in `output_keys.json`: `units`; `keys`, each with its unit and meaning; `heads` of columns of pages: what
stands above each, how its cells are written and with how many digits, what it means, and whether rows can be chosen by
it (`pages.blocks.Column`); `groups` of keys that outputs have
in common (`@name`); and `outputs` with the `commands` that print them and the keys of each object by its path, of the
whole by `top`. There `a=b` is a key `a` described as `b`, and `{}` any text. Packages that bring commands have such a
file of their own beside them, for what these print. `scripts/make_cli_reference.py` makes a page of all, terminals and
`print` show scores in points by it, and a test compares it with what commands print.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

POINTS = {"score": "z", "difference": "+z"}
"""Units that people read in points, and how their numbers are formatted."""
SHARE = "share"
"""Unit that people read in percent."""


@dataclass(frozen=True, slots=True)
class Output:
    """One output of the command line."""

    version: str
    commands: str
    keys: dict[str, dict[str, str]]  # By the path of an object, "" for the whole: what each key is described as


@cache
def source(*, is_own: bool = False) -> dict[str, Any]:
    """Return the content of the file, and of those of packages that bring commands; our `own` alone is there sooner."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("output_keys.json").read_text(encoding="utf-8"))
    if is_own:
        return found
    from importlib.metadata import entry_points  # noqa: PLC0415 (slow to import, and seldom needed)

    for package in sorted({entry.module.partition(".")[0] for entry in entry_points(group="itembank.commands")}):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            path = Path(folder) / "output_keys.json"
            content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
            for part in ("keys", "heads", "groups", "outputs"):
                found[part] = {**found[part], **content.get(part, {}), **found[part]}  # in this order, and ours stay
    return found


@cache
def outputs(*, is_own: bool = False) -> dict[str, Output]:
    """Return all outputs by their names; `is_own` as of `source`."""
    content = source(is_own=is_own)
    found, groups = {}, content["groups"]
    for name, told in content["outputs"].items():
        top = " ".join(["schema_version", told.get("top", ""), *["rows"] * ("rows" in told)])
        keys = {}
        for path, words in {**told, "": top}.items():
            if path not in {"commands", "top"}:
                listed = " ".join(groups[word[1:]] if word[0] == "@" else word for word in words.split())
                keys[path] = {key: other or key for key, _, other in (word.partition("=") for word in listed.split())}
        found[name] = Output(f"{__package__}.{name}/1", told["commands"], keys)
    return found


def output_of(name: str) -> Output:
    """Return an output; other packages are asked for what is not here."""
    own = outputs(is_own=True)
    return own[name] if name in own else outputs()[name]


def _is_of_form(key: str, listed: str) -> bool:
    """Whether a key is one of those that are listed by a name in which `{}` is any text."""
    before, some, after = listed.partition("{}")
    return bool(before and some) and key.startswith(before) and key.endswith(after)


def unit_of(key: str, output: str) -> str:
    """Return the unit of a key of an output, `name` or `name/path`, or of a key of that name in any; '' for others."""
    known, _, path = output.partition("/")
    told = output_of(known).keys if known else {}
    listed = [pair for keys in ([told[path]] if path else told.values()) for pair in keys.items()]
    own_name = [name for one, name in listed if one == key]
    name = next(iter([*own_name, *(name for one, name in listed if _is_of_form(key, one))]), key)
    own = source(is_own=True)
    is_own = name in own["keys"] or known in own["outputs"]
    return str((own if is_own else source())["keys"].get(name, ("", ""))[0])
