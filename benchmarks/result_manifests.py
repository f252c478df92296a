"""What a table of the documents was made by: the command, the commit, and digests of what went in and of the table.

A *run* is one command that makes one or more tables (`result_runs.toml`). Its *manifest*, kept in
`benchmarks/tables/manifests`, says what went in when the tables were made: the benchmark's code, the data, and the
numbers that the library gave then (`tests/snapshot`). Comparing it with what is here now says whether they are out of
date.
"""

import ast
import hashlib
import json
import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REGISTRY = ROOT / "benchmarks" / "result_runs.toml"
MANIFESTS = ROOT / "benchmarks" / "tables" / "manifests"
DOCUMENT = ROOT / "benchmarks" / "tables" / "tables.md"
SNAPSHOT = ROOT / "tests" / "snapshot" / "values.json"
COMPARED_DIGITS = 6
"""Significant digits of a number of the snapshot that count: tables show four at most."""
LIBRARIES = ("numpy", "scipy", "polars")
SHOWN_DIGITS = 12
WORDS = {"numbers": "numbers changed since: ", "benchmark": "changed since: ", "data": "other data: "}
TABLE = re.compile(r"<!-- table: (?P<name>\S+) -->\n(?P<text>.*?)\n<!-- end of table -->", re.DOTALL)
PROVENANCE = re.compile(r"\n\n\*Made by .*manifest `(?P<manifest>[0-9a-f]+)`\.\*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Run:
    """One command and the tables it makes.

    Attributes
    ----------
    name, command : str
        `{output}` in the command stands for a folder.
    tables, benchmark, data, figures : tuple of str
        Names of tables; files of the project, and folders of data, that they come from; figures drawn.
    cpu_minutes : float
    unused : tuple of str
        Beginnings of what a snapshot calls its numbers that are none of the tables'.
    """

    name: str
    command: str
    tables: tuple[str, ...]
    benchmark: tuple[str, ...]
    data: tuple[str, ...]
    figures: tuple[str, ...]
    cpu_minutes: float
    unused: tuple[str, ...] = ()


def load_runs(path: Path = REGISTRY) -> dict[str, Run]:
    """Read the registry."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Run(
            name,
            table["command"],
            *(tuple(table.get(key, ())) for key in ("tables", "benchmark", "data", "figures")),
            table["cpu_minutes"],
            tuple({*content.get("unused", ()), *table.get("unused", ())}.difference(table.get("used", ()))),
        )
        for name, table in content["runs"].items()
    }


def make_manifest(run: Run, tables: Mapping[str, str]) -> dict[str, Any]:
    """Return what there is to say of tables that were made just now: their text, and all that went in."""
    return {
        "run": run.name,
        "command": run.command.replace(" -o {output}", ""),
        "commit": git("rev-parse", "HEAD"),
        "versions": {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "processor": _kernels(),
        **what_goes_in(run),
        "tables": {name: digest(text.encode()) for name, text in tables.items()},
    }


def what_goes_in(run: Run) -> dict[str, dict[str, str]]:
    """Return digests of the numbers that the library gives by call, of the benchmark's files, and of the data."""
    return {
        "numbers": numbers_used(run),
        "benchmark": {name: _benchmark_digest(ROOT / name) for name in run.benchmark},
        "data": {name: data_digest(name) for name in run.data},
    }


def numbers_used(run: Run) -> dict[str, str]:
    """Return a short digest of the numbers of every call of the snapshot that the run's tables could use."""
    calls = json.loads(SNAPSHOT.read_text(encoding="utf-8"))["calls"]
    used = {
        call: [
            f"{place} {value if isinstance(value, str) else format(value, f'.{COMPARED_DIGITS}g')}"
            for place, value in sorted(values.items())
            if not f"{call}: {place}".startswith(run.unused)
        ]
        for call, values in calls.items()
    }
    return {call: digest("\n".join(lines).encode())[:SHOWN_DIGITS] for call, lines in used.items() if lines}


def out_of_date(run: Run, document: str, folder: Path = MANIFESTS) -> list[str]:
    """Return the reasons why a run's tables in a document are out of date; none when they are not."""
    texts = tables_of(document)
    absent = [name for name in run.tables if name not in texts]
    if absent:
        return [f"{', '.join(absent)}: not in the document"]
    path = folder / f"{run.name}.json"
    if not path.exists():
        return ["never made: there is no manifest"]
    content = path.read_bytes()
    manifest = json.loads(content)
    reasons = [
        f"{name}: edited by hand, or of another manifest"
        for name in run.tables
        if manifest["tables"].get(name) != digest(texts[name][0].encode())
        or not digest(content).startswith(texts[name][1] or "none")
    ]
    reasons += [f"command was {manifest['command']}"] * (manifest["command"] != run.command.replace(" -o {output}", ""))
    return reasons + list(_changes(manifest, what_goes_in(run)))


def tables_of(document: str) -> dict[str, tuple[str, str | None]]:
    """Return the text of every marked table of a document and the manifest it names."""
    found = {}
    for match in TABLE.finditer(document):
        text = match["text"]
        provenance = PROVENANCE.search(text)
        name = provenance["manifest"] if provenance else None
        found[match["name"]] = (PROVENANCE.sub("", text), name)
    return found


def with_tables(document: str, run: Run, tables: Mapping[str, str], manifest: bytes) -> str:
    """Return the document with new tables, each with a line that says what it was made by."""
    content = json.loads(manifest)
    line = (
        f"*Made by `{content['command']}` at commit `{content['commit'][:SHOWN_DIGITS]}`, "
        f"manifest `{digest(manifest)[:SHOWN_DIGITS]}`.*"
    )
    for name in run.tables:
        marker = re.compile(TABLE.pattern.replace(r"(?P<name>\S+)", re.escape(name)), re.DOTALL)
        if not marker.search(document):
            raise ValueError(f"the document has no marker <!-- table: {name} --> ... <!-- end of table -->.")
        block = f"<!-- table: {name} -->\n{tables[name].strip()}\n\n{line}\n<!-- end of table -->"
        document = marker.sub(lambda _, block=block: block, document)
    return document


def code_digest(files: Sequence[Path], *, modules: bool = True) -> str:
    """Digest of what Python files do: comments, docstrings and layout change nothing.

    Without `modules`, neither does the module that a name is imported from, so that files can move.
    """
    parts = (f"{path.name}\n{_without_words(path.read_text(encoding='utf-8'), modules)}" for path in files)
    return digest("\n".join(parts).encode())


@cache
def _without_words(code: str, modules: bool) -> str:
    """Say what Python code does; every run asks it of the same files."""
    tree = ast.parse(code)
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    names = {
        f"{modules and getattr(node, 'module', '')} {one.name} as {one.asname}"
        for node in imports
        for one in node.names
    }
    return "/".join([*_walk(tree), *sorted(names)])


def _walk(node: Any) -> Iterator[str]:
    """Name every node of a syntax tree and its fields in the same words in every release of Python."""
    if isinstance(node, list):
        for one in node:
            yield from _walk(one)
    elif isinstance(node, ast.AST):
        if _is_text_alone(node) or isinstance(node, ast.Import | ast.ImportFrom):
            return
        yield type(node).__name__
        for name, field in ast.iter_fields(node):
            if field not in (None, []) and name not in {"type_comment", "kind", "ctx"}:
                yield name
                yield from _walk(field)
    else:
        yield repr(node)


def _is_text_alone(node: ast.AST) -> bool:
    """Tell a docstring, which does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _python_files(part: Path) -> list[Path]:
    if part.is_file():
        return [part]
    return [path for path in sorted(part.rglob("*.py")) if path.name != "figure.py"]


def _benchmark_digest(path: Path) -> str:
    """Digest of a benchmark's code and settings."""
    if path.suffix == ".toml":
        return digest(path.read_bytes())
    settings = sorted(path.rglob("*.toml")) if path.is_dir() else []
    return digest(
        code_digest(_python_files(path), modules=False).encode() + b"".join(one.read_bytes() for one in settings)
    )


def data_folder(name: str) -> Path:
    """Return where the files of a set stand."""
    return Path(os.environ.get("ITEMBANK_SHARED", ROOT.parent / "shared")) / "data" / name


def data_digest(name: str) -> str:
    """Digest of the files of a set that benchmarks read; 'absent' where they are not here."""
    files = [path for path in sorted(data_folder(name).glob("*")) if path.suffix in {".parquet", ".csv", ".npz"}]
    if not files:
        return "absent"
    found = hashlib.sha256()
    for path in files:
        found.update(path.name.encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    return found.hexdigest()


def _changes(before: Mapping[str, Any], now: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Say what went in then and is not what is here now; data that are not here and calls of one side do not count."""
    if "numbers" not in before:
        yield f"made by older code (commit {before['commit'][:SHOWN_DIGITS]})"
    for kind, words in WORDS.items():
        then, today = before.get(kind, {}), now[kind]
        names = then.keys() & today.keys() if kind == "numbers" else then.keys() | today.keys()
        changed = [name for name in names if then.get(name) != today.get(name) and today.get(name) != "absent"]
        if changed:
            yield words + ", ".join(sorted({name.split()[0] if kind == "numbers" else name for name in changed}))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S607


def _kernels() -> str:
    """Name the BLAS kernels in use, which round differently."""
    import numpy as np  # noqa: F401, PLC0415
    from threadpoolctl import threadpool_info  # noqa: PLC0415

    return ", ".join(sorted({str(one.get("architecture")) for one in threadpool_info() if one["user_api"] == "blas"}))
