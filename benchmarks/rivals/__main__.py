"""Other tools beside itembank on the same simulated responses, in one run: ``python -m benchmarks.rivals``.

Three parts. `fits`: every tool calibrates the same matrices, a tenth of the cells hidden. `steps`: one step of an
adaptive test. `growth`: itembank alone on ever more cells, beside the least that arithmetic and memory allow. Rivals
run in the environment of ``--rival-python``, which ``make rivals`` sets up. What is measured is kept in a folder: a run
that was stopped goes on with the same command, and only what is missing is measured.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.rivals import figure, fits, growth, steps

PARTS = ("fits", "steps", "growth")
RIVAL_PYTHON = Path(".venv-rivals/bin/python")
FOLDER = Path("benchmarks/results/rivals")


def main() -> None:
    """Measure what is asked for, and print the tables."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    if "fits" in options.parts:
        shapes = tuple(shape for shape in fits.SHAPES if shape.n_items <= options.items)
        runner = fits.Runner(options.rival_python, options.limit)
        done = _read(options.output / "fits.json")
        rows = _kept(options.output / "fits.json", fits.run(runner, shapes, done), done)
        _print(fits.table(rows))
    if "steps" in options.parts:
        rows = _kept(options.output / "steps.json", steps.run(options.rival_python), [])
        _print(steps.table(rows))
    if "growth" in options.parts:
        done = _read(options.output / "growth.json")
        rows = _kept(options.output / "growth.json", growth.run(options.cells, done), done)
        _print(growth.table(rows))
    if options.figure is not None:
        figure.draw(_read(options.output / "growth.json"), _read(options.output / "fits.json"), options.figure)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rivals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    python = str(RIVAL_PYTHON) if RIVAL_PYTHON.exists() else sys.executable
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rival-python", default=python, help="interpreter that has the rivals")
    parser.add_argument("--limit", type=int, default=150, help="CPU seconds that one fit may take")
    parser.add_argument("--items", type=int, default=5_000, help="largest number of items of the fits")
    parser.add_argument("--cells", type=float, default=6e7, help="largest number of cells of the growth")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder that keeps what was measured")
    parser.add_argument("--figure", type=Path, help="draw growth and fits into this file")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"a part must be one of {', '.join(PARTS)}, got {', '.join(unknown)}")
    options.parts = options.parts or list(PARTS)
    return options


def _read(path: Path) -> list[fits.Row]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def _kept(path: Path, rows: Iterable[fits.Row], done: list[fits.Row]) -> list[fits.Row]:
    """Write every row as soon as it is there, before those that were there already and are still to come."""
    kept: list[fits.Row] = []
    for row in rows:
        kept.append(row)
        names = {one["name"] for one in kept}
        all_rows = kept + [one for one in done if one["name"] not in names]
        path.write_text(json.dumps(all_rows, indent=1), encoding="utf-8")
        print(f"{row['name']} ...", file=sys.stderr, flush=True)
    return kept


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
