"""Put what their blocks print into tutorials and python.md: ``python scripts/make_tutorials.py [PAGES]``.

Every block runs, in about three CPU-minutes; tests compare the pages with what is printed. The pages on runs and gates
need the harnesses, which ``make test-harnesses`` installs in .venv-harnesses, and take three more.
"""

import contextlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from tests.docs.blocks import run_page  # noqa: E402


def main() -> None:
    docs = REPOSITORY / "docs"
    every = [*sorted(docs.glob("tutorial-*.md")), docs / "python.md"]
    pages = [Path(name).resolve() for name in sys.argv[1:]] or every
    for page in pages:
        if page.stem in {"tutorial-run", "tutorial-gate"} and importlib.util.find_spec("lm_eval") is None:
            print(f"{page.relative_to(REPOSITORY)} left as it is: run this with .venv-harnesses/bin/python")
            continue
        if page.stem == "tutorial-costs" and "ITEMBANK_SHARED" not in os.environ:
            print(f"{page.relative_to(REPOSITORY)} left as it is: it needs the data of ITEMBANK_SHARED")
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = run_page(page.read_text(encoding="utf-8"), page.name)
        page.write_text(text, encoding="utf-8")
        print(page.relative_to(REPOSITORY))


if __name__ == "__main__":
    main()
