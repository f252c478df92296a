"""The keys of every JSON output of the command line: their meaning, described once, and the outputs that have them.

All of it is in `output_keys.json`: `units`; `keys`, each with its unit and meaning; `groups` of keys that outputs have
in common (`@name`); and `outputs` with the `commands` that print them and the keys of each object by its path, of the
whole by `top`. There `a=b` is a key `a` described as `b`, and `{}` any text. `scripts/make_cli_reference.py` makes a
page of it, terminals and `print` show scores in points by it, and a test compares it with what commands print.
"""

import json
from dataclasses import dataclass
from functools import cache
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
def source() -> dict[str, Any]:
    """Return the content of the file."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("output_keys.json").read_text(encoding="utf-8"))
    return found


@cache
def outputs() -> dict[str, Output]:
    """Return all outputs by their names."""
    found, groups = {}, source()["groups"]
    for name, told in source()["outputs"].items():
        top = " ".join(["schema_version", told.get("top", ""), *["rows"] * ("rows" in told)])
        keys = {}
        for path, words in {**told, "": top}.items():
            if path not in {"commands", "top"}:
                listed = " ".join(groups[word[1:]] if word[0] == "@" else word for word in words.split())
                keys[path] = {key: other or key for key, _, other in (word.partition("=") for word in listed.split())}
        found[name] = Output(f"{__package__}.{name}/1", told["commands"], keys)
    return found


def unit_of(key: str, output: str) -> str:
    """Return the unit of a key of an output, `name` or `name/path`, or of a key of that name in any; '' for others."""
    known, _, path = output.partition("/")
    own = [outputs()[known].keys[path]] if path else outputs()[known].keys.values() if known else ()
    name = next((keys[key] for keys in own if key in keys), key)
    return str(source()["keys"].get(name, ("", ""))[0])
