"""Take the pictures of reports in docs/reports.md: ``python scripts/make_gallery.py`` (six CPU-minutes).

The pages are of built-in data, written by the commands below in a folder that is thrown away. It needs Chromium and
the extras 'report' and 'browser', and Pillow.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from itembank import read_responses
from itembank.responses.response_files import write_responses

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
WIDTH, HEIGHT, COLOURS = 1100, 1250, 64
COMMANDS = {
    "": "quickstart -o quickstart",
    "bank": "report quickstart/bank -o bank.html",
    "model": "estimate quickstart/bank model.parquet --selection quickstart/selection.json --report model.html",
    "ranking": "compare quickstart/bank quickstart/new-models.parquet --selection quickstart/selection.json --ranking "
    "--report ranking.html",
    "pass-at-k": "scaling test-time --builtin bytelms-samples --budget 50 --report pass-at-k.html",
}
"""Commands by the name of the picture; the first makes what the others are of."""


def main() -> None:
    """Write the pages and take their pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder)
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("ITEMBANK_CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        for name, words in COMMANDS.items():
            if name == "model":
                _write_one_model(place)
            command = [sys.executable, "-m", "itembank", "--quiet", *words.split()]
            subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
            if name:
                _take(browser, place / f"{name}.html", FIGURES / f"report-{name}.png")


def _write_one_model(place: Path) -> None:
    """Write the answers of one of the models that the quickstart held out."""
    responses = read_responses(place / "quickstart" / "new-models.parquet")
    write_responses(responses.take(models=np.array([responses.n_models // 2])), place / "model.parquet")


def _take(browser: Browser, page_path: Path, picture: Path) -> None:
    """Take the top of a page, with few colours, so that the file stays small."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(page_path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    page.wait_for_timeout(300)
    page.screenshot(path=picture)
    page.close()
    with Image.open(picture) as whole:
        whole.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    main()
