"""The library that draws charts in the page: Vega, Vega-Lite and Vega-Embed as one script.

It is made by vl-convert, which holds these libraries, takes two seconds to bundle, and so is kept in the user's cache.
"""

import gzip
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from itembank.data.atomic import replacing_file
from itembank.data.user_cache import user_cache_folder
from itembank.errors import missing_package

PACKAGES = "jinja2 vl-convert-python"
"""What pages need, as pip knows it."""
LEVEL = 9
MOST_BYTES = 10_000_000
"""Of what is read from the cache."""


def check_libraries() -> None:
    """Raise `MissingDependencyError` where a library that pages need is not installed; loads none."""
    for module, library in (("jinja2", "jinja2"), ("vl_convert", "vl-convert-python")):
        if find_spec(module) is None:
            raise missing_package(f"reports need {library}", PACKAGES, ImportError(f"no module named {module!r}"))


@cache
def chart_script() -> str:
    """Return the script, which puts `vegaEmbed` into the page.

    Raises
    ------
    MissingDependencyError
        When vl-convert is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise missing_package("reports need vl-convert-python", PACKAGES, error) from error
    kept = user_cache_folder() / "pages" / f"vega-{version('vl-convert-python')}.js.gz"
    script = _kept(kept)
    if script is None:
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        _keep(kept, script)
    return script


def _kept(path: Path) -> str | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        return gzip.decompress(path.read_bytes()).decode()
    except (OSError, EOFError, ValueError):
        return None


def _keep(path: Path, script: str) -> None:
    """Keep the script where that can be done; a cache that cannot be written costs time only."""
    try:
        with replacing_file(path) as temporary:
            temporary.write_bytes(packed(script))
    except OSError:
        return


def packed(text: str) -> bytes:
    """Return a text as gzip bytes that are the same at every time."""
    return gzip.compress(text.encode(), LEVEL, mtime=0)
