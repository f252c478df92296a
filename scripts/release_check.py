"""Build what a release would be, and try it as strangers would: ``make release-check``.

Builds the source distribution and the wheel, looks at their content and size, installs the wheel in a clean
environment of every Python found (3.11 to 3.14), and there runs the README's commands and Python, and the quickstart.
With the first of them it also runs the Python of every page of the documentation, in minutes.
Writes `dist/` only. Uses the network for packages only.
"""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

from itembank.readers.builtin import IN_CHECKOUT_ONLY

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST_BYTES = 4_000_000
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
WANTED = (
    *("itembank/py.typed", "itembank/__init__.pyi", "itembank_living/__init__.pyi"),
    *(f"itembank/readers/builtin_files/bytelms_{name}.xz" for name in ("choices", "choices_terms")),
)
UNWANTED = ("tests/", "benchmarks/", "docs/", *(f"itembank/readers/builtin_files/{name}" for name in IN_CHECKOUT_ONLY))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PYTHONS, help="one version of Python")
    only = parser.parse_args().only
    wheel = build()
    problems = check_wheel(wheel)
    found = [version for version in PYTHONS if (only in (None, version)) and find_python(version)]
    if not found:
        problems.append(f"no Python of {', '.join(PYTHONS)} was found")
    for version in found:
        problems += try_wheel(wheel, version, pages() if version == found[0] else [])
    missing = [version for version in PYTHONS if version not in found and only in (None, version)]
    if missing:
        print(f"not tried, since they are not here: Python {', '.join(missing)}")
    print("\n".join(f"PROBLEM: {one}" for one in problems) or "ready to release")
    return int(bool(problems))


def build() -> Path:
    """Build both distributions from a clean folder, and return the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def check_wheel(wheel: Path) -> list[str]:
    """Say what is wrong with the content or the size of the wheel and of the source distribution."""
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        (metadata,) = (content.read(name) for name in names if name.endswith(".dist-info/METADATA"))
    problems = [f"the wheel lacks {name}" for name in WANTED if name not in names]
    problems += check_metadata(metadata)
    problems += [f"the wheel holds {name}" for name in names if name.startswith(UNWANTED)]
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes, {len(names)} files")
    if size > MOST_BYTES:
        problems.append(f"the wheel must be at most {MOST_BYTES:,} bytes, got {size:,}")
    (source,) = DIST.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        if not any(name.endswith("/tests/conftest.py") for name in archive.getnames()):
            problems.append("the source distribution lacks the tests")
    return problems


def check_metadata(content: bytes) -> list[str]:
    """Say what an index would refuse of the metadata, and what a reader would miss."""
    try:
        metadata = Metadata.from_email(content, validate=True)
    except ExceptionGroup as group:
        return [f"metadata: {error}" for error in group.exceptions]
    missing = [name for name in ("summary", "description", "license_expression") if not getattr(metadata, name)]
    return [f"metadata: {name} must be given" for name in missing]


def try_wheel(wheel: Path, version: str, documents: list[Path]) -> list[str]:
    """Install the wheel in a clean environment, and run what the README, the quickstart and these pages say."""
    problems = []
    with tempfile.TemporaryDirectory(prefix="itembank-release-") as place:
        folder = Path(place)
        run(find_python(version), "-m", "venv", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[report]")
        for words in commands():
            problems += attempt(version, folder, folder / "venv" / "bin" / words[0], *words[1:])
        for number, code in enumerate(blocks("python"), start=1):
            problems += attempt(version, folder, python, "-c", code, name=f"README, Python block {number}")
        problems += attempt(version, folder, folder / "venv" / "bin" / "itembank", "quickstart")
        for page in documents:
            place_of_page = folder / "pages" / page.stem
            place_of_page.mkdir(parents=True)
            if any("itembank sample-data" in code for code in blocks("sh", page)):
                problems += attempt(version, place_of_page, folder / "venv" / "bin" / "itembank", "sample-data")
            code = "\n".join(blocks("python", page))
            problems += attempt(version, place_of_page, python, "-c", code, name=f"Python of docs/{page.name}")
    ran = (
        f"all of the README, the quickstart and {len(documents)} pages"
        if documents
        else "the README and the quickstart"
    )
    print(f"Python {version}: {'failed' if problems else f'{ran} ran'}")
    return problems


def attempt(version: str, folder: Path, *words: object, name: str = "") -> list[str]:
    """Run a command in a folder; return what went wrong."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "ITEMBANK_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return []
    what = name or " ".join([Path(str(words[0])).name, *map(str, words[1:])])
    return [f"Python {version}: {what}: exit code {done.returncode}: {done.stderr.strip()[-500:]}"]


def commands() -> list[list[str]]:
    """Command lines of the README's block of shell, in their order."""
    lines = [line for code in blocks("sh") for line in code.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def pages() -> list[Path]:
    """Pages of the documentation whose Python runs without private data; tutorials have a script of their own."""
    found = sorted((ROOT / "docs").glob("*.md"))
    return [page for page in found if not page.stem.startswith("tutorial-") and blocks("python", page)]


def blocks(language: str, page: Path = ROOT / "README.md") -> list[str]:
    """Blocks of a page in one language."""
    return [code for name, code in FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def find_python(version: str) -> str | None:
    """Return an interpreter of this version that starts."""
    path = shutil.which(f"python{version}")
    if path is None:
        return None
    works = subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0
    return path if works else None


def run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


if __name__ == "__main__":
    sys.exit(main())
