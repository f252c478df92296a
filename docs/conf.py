"""Sphinx configuration: Markdown pages, no network, warnings are errors (`make docs`)."""

import os
import re
import runpy
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

project = "itembank"
author = "the itembank authors"
copyright = "the itembank authors"  # noqa: A001 (Sphinx's name)
release = version = installed_version("itembank")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3  # lets pages link to each other's headings
suppress_warnings = ["ref.python"]  # axis names in shapes are no references

autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_preprocess_types = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"itembank {version}"
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")  # which of several versions search engines show
html_show_sourcelink = False
html_copy_source = False

runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "make_cli_reference.py"), run_name="__main__")

SEVERAL = re.compile(r"^(\w+(?:, \w+)+) : (.*)$")


def one_entry_each(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Split entries such as ``low, high : (n_models,)``: napoleon takes only one name for an attribute."""
    split = []
    for number, line in enumerate(lines):
        found = SEVERAL.match(line)
        if found is None:
            split.append(line)
            continue
        text = []
        for below in lines[number + 1 :]:
            if not below.startswith("    "):
                break
            text.append(below)
        *first, last = found[1].split(", ")
        for name in first:
            split += [f"{name} : {found[2]}", *text]
        split.append(f"{last} : {found[2]}")
    lines[:] = split


OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./(?:benchmarks|contributing)/[^)#]+)(?:#[^)]*)?\)")


def files_outside(_app: Any, _name: str, source: list[str]) -> None:
    """Link pages outside of the book, as tables of results and pages for contributors, as files to look at."""
    source[0] = OUTSIDE.sub(lambda found: f"{{download}}`{' '.join(found[1].split())} <{found[2]}>`", source[0])


SKILL = Path(__file__).parent.parent / "examples" / "skill" / "SKILL.md"


def llms_txt(app: Any, error: Exception | None) -> None:
    """Write llms.txt (https://llmstxt.org) beside the pages: the skill file, and a link to every page."""
    if error is None:
        _, _, text = SKILL.read_text(encoding="utf-8").split("---\n", 2)
        pages = [f"- [{title.astext()}]({name}.html)" for name, title in sorted(app.env.titles.items())]
        text = "\n".join([text.strip(), "", "## Pages", "", *pages, ""])
        (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    """Read docstrings before napoleon does, and pages before MyST; write llms.txt last."""
    app.connect("autodoc-process-docstring", one_entry_each, priority=1)
    app.connect("source-read", files_outside)
    app.connect("build-finished", llms_txt)
