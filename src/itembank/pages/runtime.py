"""The library that draws charts in the page: Vega, Vega-Lite and Vega-Embed as one script.

It is made by vl-convert, which holds these libraries and takes three seconds to bundle them. Where it is known what
comes of that, the script is kept in the user's cache. Nothing else that lies there is taken: it would run in pages.
"""

import gzip
import hashlib
import zlib
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from itembank.errors import MissingDependencyError, missing_package
from itembank.files.atomic import replacing_file, user_cache_folder

PACKAGES = "jinja2 vl-convert-python"
"""What pages need, as pip knows it."""
DRAWING = "vl-convert-python"
LEVEL = 9
MOST_BYTES = 10_000_000
"""Of what is read from the cache."""
LAST = "373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7"
DIGESTS = {
    "1.7.0": "b632ae0b65aa27fc22d8045458c2c0fe06694dc252b134fa415b52ef8a7a7220",
    "1.8.0": "b66996bb5822b536e6808945330c26223bf890967feb4a7e681b432d3563ea8a",
    "1.9.0": LAST,
    "1.9.0.post1": LAST,
}
"""SHA-256 of the script by version of vl-convert; with another version it is made anew by each process."""


def check_libraries() -> None:
    """Raise `MissingDependencyError` where a library that pages need is not installed; loads none."""
    if find_spec("jinja2") is None:
        raise missing_package("reports need jinja2", PACKAGES, ImportError("no module named 'jinja2'"))
    check_drawing_library()


def check_drawing_library() -> None:
    """Raise `MissingDependencyError` where the library that draws charts is not installed; loads none."""
    if find_spec("vl_convert") is None:
        raise _missing(ImportError("no module named 'vl_convert'"))


def _missing(error: ImportError) -> MissingDependencyError:
    return missing_package("charts need vl-convert-python", DRAWING, error)


def drawing_library() -> ModuleType:
    """Return the library that draws charts.

    Raises
    ------
    MissingDependencyError
        When vl-convert is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise _missing(error) from error
    return vl_convert


@cache
def chart_script() -> str:
    """Return the script, which puts `vegaEmbed` into the page.

    Raises
    ------
    MissingDependencyError
        When vl-convert is not installed.
    """
    library = drawing_library()
    made_by = version("vl-convert-python")
    kept = user_cache_folder() / "pages" / f"vega-{made_by}.js.gz"
    script = _kept(kept, DIGESTS.get(made_by))
    if script is None:
        script = library.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        if made_by in DIGESTS:
            _keep(kept, script)
    return script


def _kept(path: Path, digest: str | None) -> str | None:
    """Read the script from the cache; None unless it is the one with this digest."""
    if digest is None:
        return None
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        with gzip.open(path) as file:
            script = file.read(MOST_BYTES)
    except (OSError, EOFError, zlib.error):
        return None
    return script.decode() if hashlib.sha256(script).hexdigest() == digest else None


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
