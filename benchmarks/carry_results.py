"""Say of tables that the code changed and their numbers did not: ``python -m benchmarks.carry_results SNAPSHOT...``.

A SNAPSHOT was written by scripts/snapshot.py with the code that made some of the tables. Its calls, over every method,
family and law, are made again. Where all that a run's tables could use give the same numbers, its manifest takes over
the code of today. It keeps the commit that made the tables, and names this one and the number of digits beside it.
Tables show four digits at most: --digits 6 is for a change that moves what rounding leaves.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.result_manifests import DOCUMENT, MANIFESTS, Run, git, library_code, load_runs, tables_of, with_tables
from tests.snapshot.compare import changes
from tests.snapshot.record import record

DIGITS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshot", type=Path, nargs="+")
    parser.add_argument("--digits", type=int, default=DIGITS, choices=range(6, DIGITS + 1), metavar=f"6..{DIGITS}")
    arguments = parser.parse_args()
    if git("status", "--porcelain", "src"):
        sys.exit("commit first: a manifest names a commit.")
    now = record()
    for path in arguments.snapshot:
        snapshot = json.loads(path.read_text(encoding="utf-8"))
        differences = changes(snapshot["calls"], now, digits=arguments.digits)
        print(f"{path}:", "\n".join(differences) or "all numbers are the same")
        for run in load_runs().values():
            used = [one for one in differences if not one.startswith(run.unused)]
            print(
                f"{run.name:26}"
                f"{'other numbers: ' + used[0] if used else carry(run, snapshot['code'], arguments.digits)}"
            )


def carry(run: Run, code: dict[str, str], digits: int) -> str:
    """Give a run's manifest the code of today where it was made by this code; say what was done."""
    path = MANIFESTS / f"{run.name}.json"
    if not path.exists():
        return "no manifest"
    manifest: dict[str, Any] = json.loads(path.read_bytes())
    if manifest["code"] != code:
        return "made by other code than the snapshot"
    manifest["code"] = library_code()
    manifest["carried"] = [*manifest.get("carried", []), git("rev-parse", "HEAD")]
    manifest["carried_digits"] = min(manifest.get("carried_digits", DIGITS), digits)
    content = json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"
    document = DOCUMENT.read_text(encoding="utf-8")
    texts = {name: text for name, (text, _) in tables_of(document).items()}
    DOCUMENT.write_text(with_tables(document, run, texts, content), encoding="utf-8")
    path.write_bytes(content)
    return "carried"


if __name__ == "__main__":
    main()
