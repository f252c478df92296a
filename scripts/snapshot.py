"""Keep what the program gives today, and see later whether it gives the same.

    python scripts/snapshot.py write FILE      some seventy calls over every method, family and law (two CPU-minutes)
    python scripts/snapshot.py compare FILE    the same calls again: whatever differs beyond 12 digits is named

Before a change that is to change no number, write a file; after it, compare. On one machine with one kernel of the BLAS:
`tests/snapshot/values.json` holds the numbers to the digits that hold on every processor.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.snapshot.compare import changes  # noqa: E402
from tests.snapshot.record import record  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--digits", type=int, default=12)
    chosen = parser.parse_args()
    found = record(lambda call: print(call, file=sys.stderr, flush=True))
    if chosen.action == "write":
        chosen.file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
        return 0
    differences = changes(json.loads(chosen.file.read_text(encoding="utf-8")), found, digits=chosen.digits)
    print("\n".join(differences) or f"{len(found)} calls give the same numbers to {chosen.digits} digits")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
