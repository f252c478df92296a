"""Bring in the scripts that make the built-in data set `bytelms`."""

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def load(name: str) -> ModuleType:
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))
    return importlib.import_module(name)


@cache
def suite() -> tuple[Any, Any]:
    """The texts that ship with Python, and all test items; drawing them takes seconds."""
    sources = load("bytelms_sources").read_sources()
    return sources, load("bytelms_tasks").make_suite(sources)
