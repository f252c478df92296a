"""Make registered tables again: ``python -m benchmarks.remake_results panel untouched`` (or ``--stale``).

Runs the command of each run, puts its tables into the document, and keeps its manifest (`benchmarks/tables`). What the
command writes stays in `benchmarks/results`, in a folder named after the code, so that a run that was stopped goes on
where its command can, and never with numbers of other code.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time

from benchmarks.quoted_figures import wrong_figures
from benchmarks.result_manifests import (
    DOCUMENT,
    MANIFESTS,
    ROOT,
    Run,
    digest,
    git,
    load_runs,
    make_manifest,
    out_of_date,
    what_goes_in,
    with_tables,
)


def main() -> None:
    runs = load_runs()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.remake_results", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(runs))
    parser.add_argument("--stale", action="store_true", help="all that are out of date, the quickest first")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(runs))
    if unknown or not (arguments.names or arguments.stale):
        parser.error(f"name runs among {', '.join(runs)}, or --stale" + (f"; got {unknown}" if unknown else ""))
    document = DOCUMENT.read_text(encoding="utf-8")
    chosen = [
        run for run in runs.values() if run.name in arguments.names or (arguments.stale and out_of_date(run, document))
    ]
    for run in sorted(chosen, key=lambda run: run.cpu_minutes):
        remake(run)
    print("\n".join(wrong_figures()))


def remake(run: Run) -> None:
    """Run the command, and put its tables into the document."""
    started = _made_by(run)
    if started["changed"]:
        sys.exit(f"commit first: a manifest names a commit, and these differ from it:\n{started['changed']}")
    output = ROOT / "benchmarks" / "results" / run.name / digest(json.dumps(started).encode())[:12]
    output.mkdir(parents=True, exist_ok=True)
    command = run.command.replace("{output}", shlex.quote(str(output)))
    clock = time.monotonic()
    print(f"{run.name}: {command} (about {run.cpu_minutes:g} CPU-minutes)", flush=True)
    subprocess.run([sys.executable, *shlex.split(command)[1:]], cwd=ROOT, check=True, env=_environment())
    if _made_by(run) != started:
        sys.exit(f"{run.name}: code or data changed while it ran; nothing was written to the document")
    tables = {name: (output / f"{name}.md").read_text(encoding="utf-8").strip() for name in run.tables}
    manifest = json.dumps(make_manifest(run, tables), indent=1, sort_keys=True).encode() + b"\n"
    MANIFESTS.mkdir(parents=True, exist_ok=True)
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8"), run, tables, manifest), encoding="utf-8")
    (MANIFESTS / f"{run.name}.json").write_bytes(manifest)
    print(f"{run.name}: made in {(time.monotonic() - clock) / 60.0:.0f} minutes", flush=True)


def _made_by(run: Run) -> dict[str, object]:
    """Return all that the tables come from: committed code, what differs from it, and what manifests keep."""
    code = git("rev-parse", "HEAD:src", "HEAD:benchmarks")
    return {"code": code, "changed": git("status", "--porcelain", "src", "benchmarks"), **what_goes_in(run)}


def _environment() -> dict[str, str]:
    """Give each process one thread, and name the folder of the data."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {"ITEMBANK_SHARED": str(ROOT.parent / "shared"), **os.environ, **threads}


if __name__ == "__main__":
    main()
