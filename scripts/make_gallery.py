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

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
WIDTH, HEIGHT, COLOURS = 1100, 1250, 64
COMMANDS = {
    "": "quickstart -o quickstart",
    "bank": "report quickstart/bank -o bank.html --title Classifiers",
    "model": "report quickstart/bank quickstart/new-models.parquet --selection quickstart/selection.json "
    "--model MODEL -o model.html",
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
            command = [sys.executable, "-m", "itembank", "--quiet", *words.split()]
            if "MODEL" in command:
                command[command.index("MODEL")] = _held_out_model(place)
            subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
            if name:
                _take(browser, place / f"{name}.html", FIGURES / f"report-{name}.png")


def _held_out_model(place: Path) -> str:
    """Return one of the models that the quickstart held out."""
    from itembank import read_responses  # noqa: PLC0415 (after the command that writes it)

    held_out = read_responses(place / "quickstart" / "new-models.parquet").model_ids
    return held_out[len(held_out) // 2]


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
