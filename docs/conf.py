"""Sphinx configuration: Markdown pages, no network, warnings are errors (`make docs`)."""

from importlib.metadata import version as installed_version

project = "itembank"
author = "the itembank authors"
copyright = "the itembank authors"  # noqa: A001 (Sphinx's name)
release = version = installed_version("itembank")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3  # lets pages link to each other's headings
suppress_warnings = ["toc.empty_glob"]

html_theme = "alabaster"
html_title = f"itembank {version}"
html_theme_options = {
    "description": "Full-benchmark scores, with intervals, from a handful of items.",
    "page_width": "1080px",
    "sidebar_width": "220px",
    "show_powered_by": False,
    "fixed_sidebar": True,
}
html_show_sourcelink = False
html_copy_source = False
