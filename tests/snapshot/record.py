"""Run the calls of the snapshot, and keep what any change of a number or an id that they give would move."""

import base64
import contextlib
import gzip
import hashlib
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

from tests.cli.contract.calls import run
from tests.snapshot.calls import CALLS, INPUTS
from tests.snapshot.verbs import VERBS
from tests.snapshot.world import make_world

EXIT_CODES = {0, 3}  # 3: the precision asked for was not reached
N_PROJECTIONS = 2
DIGEST = re.compile(r"[0-9a-f]{8,}")
CLOCK = re.compile(r"seconds_|study-seconds|last_event|(.*\.)?(at|created|time)$")
"""Columns that say how long something took, or when it was."""
ABOUT_FILES = ("files", "schema_version", "features", "itembank_version")
"""What the record of a bank says of its files and of the release."""
PAGE_DATA = re.compile(r'id="page-data">([^<]*)<')


def record(report=lambda name: None):
    """Carry out the calls in a new folder: what each gave, by its name, as values by their places."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_world(folder)
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patched:
            patched.setenv("ITEMBANK_CACHE", str(folder / "cache"))
            for call, words in CALLS.items():
                report(call)
                before = _files(folder)
                code, out, err = run(words, INPUTS.get(call, ""))
                if code not in EXIT_CODES:
                    raise RuntimeError(f"{call}: itembank {words}: exit code {code}: {err}")
                found[call] = dict(_printed(out)) | dict(_written(folder, _files(folder) - before))
            for call, verb in VERBS.items():
                report(call)
                found[call] = dict(_columns(verb(), ""))
    return found


def _files(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


def _printed(out):
    """What a command prints as JSON, be it one object or one a line."""
    with contextlib.suppress(json.JSONDecodeError):
        content = json.loads(out)
        del content["schema_version"]
        yield from _columns(content.pop("rows", content), "")
        return
    with contextlib.suppress(json.JSONDecodeError):
        yield from _columns([json.loads(line) for line in out.splitlines()], "")


def _written(folder, paths):
    """Arrays of banks and their caches, tables, and data of pages; not those of banks without some models.

    The tables of a bank, which mostly repeat those it is made of, are one array each.
    """
    for path in sorted(path for path in paths if not path.name.startswith("fold-")):
        is_cached = "cache" in path.relative_to(folder).parts[:-1]
        is_alone = path.parent == folder
        place = "cache" if is_cached else path.name  # a cached file is named after a digest
        if path.suffix == ".safetensors":
            for name, array in sorted(load_file(path).items()):
                yield from _projections(f"{place}: {name}", array)
        elif is_cached or "study" in path.parts or "prediction" in path.parts:
            continue
        elif path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
            kept = content if isinstance(content, list) else {k: v for k, v in content.items() if k not in ABOUT_FILES}
            yield from _columns(kept, f"{place if is_alone or place == 'bank.json' else path.suffix}: ")
        elif path.suffix in {".csv", ".parquet"}:
            table = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
            columns = table.to_dict(as_series=False)
            yield from _columns(columns if is_alone else list(columns.values()), f"{place}: ")
        elif path.suffix == ".html":
            (data,) = PAGE_DATA.findall(path.read_text(encoding="utf-8"))
            yield from _columns(json.loads(gzip.decompress(base64.b64decode(data)))["data"], f"{place}: ")


def _columns(content, place):
    """What stands under the same names, in its order, is one array of numbers, or one list of ids."""
    columns = {}
    for name, value in _leaves(content, ""):
        if CLOCK.match(name):
            continue
        columns.setdefault(name, []).append(value)
    for name, values in columns.items():
        numbers = [value for value in values if not isinstance(value, str)]
        if numbers:
            yield from _projections(f"{place}{name}", [np.nan if one is None else one for one in numbers])
        # sentences may be put in better words, and digests are of files' bytes, versions and layout
        ids = [value for value in values if isinstance(value, str) and " " not in value and not DIGEST.search(value)]
        if ids:
            yield f"{place}{name}.ids", hashlib.sha256("\n".join(ids).encode()).hexdigest()[:12]


def _leaves(content, name):
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _leaves(value, f"{name}.{key}" if name else key)
    elif isinstance(content, list):
        for value in content:
            yield from _leaves(value, name)
    else:
        yield name, content


def _projections(place, values):
    """Sums of an array weighted by waves: any change of a number, or of their order, moves them."""
    numbers = np.asarray(values, dtype=np.float64).ravel()
    yield f"{place}.n", numbers.size
    yield f"{place}.n_missing", int(np.isnan(numbers).sum())
    waves = np.cos(np.outer(np.arange(1, N_PROJECTIONS + 1), np.arange(numbers.size) + 0.5))
    for k, wave in enumerate(waves):
        yield f"{place}.{k}", float(wave @ np.nan_to_num(numbers))
