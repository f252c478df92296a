"""Keep what the program gives today, and see later whether it gives the same.

    python scripts/snapshot.py write FILE      calls over every command, method, family and law (three CPU-minutes);
                                               numbers of a FILE that is there stay where they agree to 12 digits
    python scripts/snapshot.py compare FILE    the same calls again: whatever differs beyond 12 digits is named

Before a change of the code that is to change no number, write a file; after it, compare, on the same machine.
`tests/snapshot/values.json` is such a file; its test compares the digits that hold on every processor.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.snapshot.compare import changes, kept
from tests.snapshot.record import record


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--digits", type=int, default=12)
    chosen = parser.parse_args()
    found = record(lambda call: print(call, file=sys.stderr, flush=True))
    is_new = chosen.action == "write" and not chosen.file.exists()
    known = {} if is_new else json.loads(chosen.file.read_text(encoding="utf-8"))["calls"]
    if chosen.action == "write":
        content = {"calls": kept(known, found, digits=chosen.digits)}
        chosen.file.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")
        return 0
    differences = changes(known, found, digits=chosen.digits)
    print("\n".join(differences) or f"{len(found)} calls give the same numbers to {chosen.digits} digits")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
