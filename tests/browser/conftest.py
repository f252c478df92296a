"""A headless Chromium of the system, and pages written once for all tests."""

import os
import shutil
from pathlib import Path

import pytest

from tests.browser.made_pages import PAGES

FLAGS = (
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE = 60_000  # Milliseconds that a page may take on a machine with much else to do


@pytest.fixture(scope="session")
def chromium():
    """Start the browser that ITEMBANK_CHROMIUM names, or the one on the path."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")
    path = os.environ.get("ITEMBANK_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium found: install the package chromium, or set ITEMBANK_CHROMIUM to the program")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    folder, paths = tmp_path_factory.mktemp("reports"), {}

    def write(name: str) -> Path:
        if name not in paths:
            paths[name] = PAGES[name]().save(folder / f"{name}.html")
        return paths[name]

    return write


class Watched:
    def __init__(self, page, path: Path) -> None:
        self.page, self.path = page, path
        self.said: list[str] = []
        self.asked: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}"))
        self.refused = 0
        page.on("requestfailed", self._count_refused)
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")

    def _count_refused(self, request) -> None:
        self.refused += request.failure == "csp"

    @property
    def requests(self) -> list[str]:
        own = {self.path.as_uri()}
        return [url for url in self.asked if url.split("#")[0] not in own and not url.startswith(("blob:", "data:"))]


@pytest.fixture
def open_page(chromium, written):
    contexts = []

    def open_it(name: str, *, width: int = 1200, dark: bool = False) -> Watched:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        contexts.append(context)
        return Watched(context.new_page(), written(name))

    yield open_it
    for context in contexts:
        context.close()
