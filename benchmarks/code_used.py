"""Which files of the project a benchmark could run, found from imports alone.

Long runs keep their parts under the digest of these files, so that a change elsewhere (a command, a reader of
harnesses) throws nothing away, and a change of what the numbers come from always does.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {place.name: place for place in (*sorted((ROOT / "src").iterdir()), ROOT / "benchmarks")}
MODULE = re.compile(r"^(itembank\w*(?:\.\w+)+)(?::\w+)?$")
"""How tables of methods name a kernel or its module: by text, so that nothing is loaded before it is needed."""


def files_used(*roots: Path) -> list[Path]:
    """Return Python files (of the folders among the roots, too) and all files of the project they import, sorted.

    Imports inside functions count, and so do modules that are named by text. A package's own names are looked up where
    its ``__init__`` takes them from.
    """
    waiting = [file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*.py")))]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_imports_of(file))
    return sorted(found)


@cache
def _imports_of(file: Path) -> tuple[Path, ...]:
    """Return the files that a file imports; every benchmark asks it of the same ones."""
    return tuple(_imported(file))


def _imported(file: Path) -> Iterator[Path]:
    """Give the files that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from _named(_absolute(file, node), [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from _named(alias.name, [])
        elif isinstance(node, ast.Constant) and (module := MODULE.match(str(node.value))):
            yield from _named(module[1], [])


def _absolute(file: Path, node: ast.ImportFrom) -> str:
    """Name the module that an import is from, relative ones too."""
    if not node.level:
        return node.module or ""
    package = file.parents[node.level - 1].relative_to(SOURCES["itembank"].parent)
    return ".".join([*package.parts, *([node.module] if node.module else [])])


def _named(module: str, names: Iterable[str]) -> Iterator[Path]:
    """Give the files of a module, and of those of the names that are modules themselves."""
    first, *rest = module.split(".")
    if first not in SOURCES:
        return
    place = SOURCES[first].joinpath(*rest)
    inside = {name: [path for path in _files(place / name) if path.is_file()] for name in names}
    for paths in inside.values():
        yield from paths
    if not names or not all(inside.values()):
        yield from (path for path in _files(place) if path.is_file())


def _files(place: Path) -> tuple[Path, ...]:
    """Where the code of a module or a package may stand."""
    return place.with_suffix(".py"), place / "__init__.py", place / "__init__.pyi"
