"""`itembank bank`: list and build ready banks; change banks, each change a new version."""

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import itembank as ib
from itembank.cli.command import Decorator, Group, together
from itembank.cli.new_results import mixed_prompts_option
from itembank.cli.options import (
    EXISTING,
    EXISTING_FOLDER,
    FILE,
    FOLDER,
    bank_argument,
    format_option,
    ids_of_file,
    option,
    output_option,
    refuse_unused,
    responses_argument,
)
from itembank.cli.render import note, print_record, print_rows, progress, warnings_as_notes
from itembank.errors import shown, visible

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.progress import ProgressCallback
    from itembank.responses.responses import ResponseMatrix


@click.group(
    "bank",
    cls=Group,
    sections={
        "Ready banks": ("list", "build"),
        "Changes": ("add-items", "add-models", "recalibrate", "retire", "note", "add-scores"),
    },
)
def bank_command() -> None:
    """List and build ready banks; change a bank: every change writes a new one, and itembank info --log lists them.

    \b
      itembank bank list
      itembank bank build swebench-verified
      itembank bank add-models bank new-models.parquet --how random -o bank-2
      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank info bank-2 --log
      itembank estimate bank-2 new-model.csv --target mmlu_pro@1
    """  # noqa: D301


@bank_command.command("list")
@format_option
def list_command(output_format: str) -> None:
    """List the banks that every command takes as bank:NAME, and those that can be built.

    The table has the usual number of items to run, the cross-validated error of the overall score, and the half-width
    of 95 % intervals, both in points. JSON and CSV also have other numbers of items, source, licence, harnesses and
    notes.

    \b
      itembank bank list
      itembank bank list --format json
      itembank estimate bank:swebench-verified run/
    """  # noqa: D301
    from itembank.publishing.recipes import list_ready  # noqa: PLC0415

    rows = list_ready()
    if output_format != "table":
        print_rows(rows, output_format, "bank-list")
        return
    shown_rows = [
        {
            "name": row["name"].removeprefix("bank:"),
            "status": row["status"],
            "items": row["at_items"],
            "of": row["n_items"],
            "models": row["n_models"],
            "newest": row["newest"] and row["newest"][:7],
            "months old": row["months_old"] and f"{row['months_old']:.0f}",
            "error": row["error"],
            "half_width": row["half_width"],
        }
        for row in rows
    ]
    print_rows(
        shown_rows,
        output_format,
        "bank-list",
        title="Ready banks, taken as bank:NAME; error and half-width of intervals in points",
        least=("newest", "half_width"),
    )
    for row in rows:
        if row["source"] and row["status"] in {"package", "built"}:
            run_by = f", for {', '.join(row['harnesses'])}" if row["harnesses"] else ""
            state = f" at {row['revision'][:12]}" if row["revision"] else ""
            note(visible(f"{row['name']}: {row['licence']}, {row['source']}{state}{run_by}"))
    if any(row["status"] == "recipe" for row in rows):
        note("To build a recipe: itembank bank build NAME")


@bank_command.command("build")
@click.argument("recipe", metavar="NAME|FILE.toml")
@option("--from FOLDER files", "Read the source's files in this folder, and fetch nothing.", EXISTING_FOLDER)
@option("--into FOLDER", "Where to put what is fetched.  [default: the user's cache]", FOLDER)
@option("--force", "Replace the bank of this name that was built before.", bool)
@format_option
def build_command(*, recipe: str, files: Path | None, into: Path | None, force: bool, output_format: str) -> None:
    """Build a ready bank: fetch public results, check them, calibrate, and keep the bank without the results.

    NAME is one of itembank bank list; or a FILE of your own says what to fetch, how to read it, and the bank's name
    (docs/ready-banks.md). Then every command takes bank:NAME, without a connection. An interrupted download continues.
    Mind the licence of the results.

    \b
      itembank bank build swebench-verified
      itembank bank build bfcl --from BFCL-Result/2024-08-11
      itembank bank build ./mine.toml
    """  # noqa: D301
    refuse_unused(("into", files is None, "results that are fetched, not with --from"))
    with warnings_as_notes(), progress("bank build") as report:
        built = ib.publishing.build_ready(recipe, files=files, into=into, overwrite=force, progress=report)
    published = built.bank.published
    row = {
        "name": f"bank:{built.name}",
        "bank": built.bank.bank_id,
        "n_models": built.bank.n_calibration_models,
        "n_left_out": len(built.left_out),
        "n_items": built.bank.n_total,
        "n_items_to_run": [one.selection.n_items for one in published.subsets] if published else None,
        "revision": built.fetched and built.fetched.revision,
        "folder": str(built.folder),
    }
    print_rows([row], output_format, "bank-build", title="Built")
    own = built.bank.items_to_run
    n_items = built.bank.n_items if own is None else own.n_items
    note(f"Next: itembank select bank:{built.name} -n {n_items} --ids list, run these items, then")
    note(f"      itembank estimate bank:{built.name} RESULTS")


_HOW = option(
    "--how",
    "How each model's items were chosen, if its file does not say.",
    ["complete", "random", "fixed", "adaptive"],
)
_NOTE = option("--note TEXT", "Why; the bank's history keeps it.", default="")


def _changing(name: str, *options: Decorator, may_only_show: bool = False) -> Decorator:
    """Make a command of a function that gets a bank, what was asked, and `progress`, and returns the new bank.

    One that may only show what it would do returns None, and takes no `-o` then.
    """

    def make(change: Callable[..., "Bank | None"]) -> Any:
        @functools.wraps(change)
        def command(*, bank: Path, output: Path | None, force: bool, output_format: str, **asked: Any) -> None:
            from itembank.bank.bank_files import check_bank_destination  # noqa: PLC0415

            if output is not None:
                check_bank_destination(output, overwrite=force)
            elif not asked["dry_run"]:
                raise click.UsageError("Missing option '-o' / '--output'.")
            loaded = ib.load_bank(bank)
            with warnings_as_notes(), progress(f"bank {name}") as report:
                changed = change(loaded, output_format=output_format, progress=report, **asked)
            if changed is not None and output is not None:
                _write(changed, output, output_format, force=force)

        writing = (
            output_option("the new bank", required=not may_only_show),
            option("--force", "Replace the bank at -o, if there is one.", bool),
            format_option,
        )
        return bank_command.command(name)(together(bank_argument, *options, *writing)(command))

    return make


def _write(bank: "Bank", output: Path, output_format: str, *, force: bool) -> None:
    """Write a changed bank and say what it is."""
    ib.save_bank(bank, output, overwrite=force)
    row = {
        "bank": bank.bank_id,
        "name": bank.name or None,
        "version": bank.version,
        "target_id": bank.target_id,
        "models": bank.n_models,
        "items": bank.n_items,
        "items_aside": bank.n_aside,
    }
    print_rows([row], output_format, "bank")
    note(f"Written to {output}.")


@_changing(
    "add-items",
    responses_argument,
    option("--status", "field-test: not in the score yet.", ["active", "suspect", "field-test"], default="active"),
    option("--dry-run", "Show what RESPONSES say about the new items, and write nothing.", bool),
    _HOW,
    mixed_prompts_option,
    _NOTE,
    may_only_show=True,
)
def add_items(
    bank: "Bank",
    *,
    responses: tuple[Path, ...],
    allow_mixed_prompts: bool,
    dry_run: bool,
    output_format: str,
    progress: "ProgressCallback",
    **asked: Any,
) -> "Bank | None":
    """Add new items to BANK, on its scale, with the models that answered them.

    RESPONSES need at least 3 models, better 10 to 20 that span the bank's abilities, with answers to new and to old
    items; past models need no answers to old ones. Old items keep their parameters. The score is then one of old and
    new items, and has an id of its own. --dry-run shows the new items' parameters and their errors; the error that the
    link adds to a score; and the past models that should be run on the new items next.

    \b
      itembank bank add-items bank questions-of-may.csv --dry-run
      itembank bank add-items bank questions-of-may.csv --note "questions of May" -o bank-2
    """  # noqa: D301
    if dry_run:
        nothing = "a bank that is written, not with --dry-run"
        refuse_unused(*((name, False, nothing) for name in ("output", "force", "status", "how", "note")))
        linked = ib.banks.link_items(bank, _read(bank, responses, allow_mixed_prompts), progress=progress)
        facts = {
            "bank": linked.bank_id,
            "linking_models": linked.n_models,
            "range_covered": linked.covered,
            "old_items": linked.anchors.height,
            "unlinked": list(linked.unlinked),
            "linking_error": linked.linking_error,
            "further_models": list(linked.further_models),
        }
        print_record(
            facts,
            "items",
            linked.rows(),
            output_format,
            "bank-link",
            heading="New items, scores in points",
            least=("scenario", "n_answers", "mean_response"),
        )
        if linked.further_models:
            note(f"To know more, run these past models on the new items: {visible(shown(linked.further_models))}.")
        return None
    changed = ib.banks.add_items(bank, _read(bank, responses, allow_mixed_prompts), progress=progress, **asked)
    made = None if changed.history is None else changed.history.changes[-1].link
    if made is not None and made.linking_error is not None:
        note(
            f"Linked by {made.n_models} models and {made.n_items} old items: the link adds a standard error of "
            f"{100 * made.linking_error:.2f} points to scores."
        )
    return changed


@_changing(
    "add-models",
    responses_argument,
    _HOW,
    option("--selection", "The selection that the models ran, in place of --how.", FILE),
    mixed_prompts_option,
    _NOTE,
)
def add_models(
    bank: "Bank",
    *,
    responses: tuple[Path, ...],
    how: str | None,
    selection: Path | None,
    allow_mixed_prompts: bool,
    note: str,
    **_others: Any,
) -> "Bank":
    """Add the models of RESPONSES to BANK; its items keep their parameters, its scores their meaning.

    RESPONSES are response files, logs of harnesses (also of itembank run), or journals of sessions.

    \b
      itembank bank add-models bank new-models.parquet --selection selection.json -o bank-2
      itembank bank add-models bank session.jsonl -o bank-2
    """  # noqa: D301
    given = _read(bank, responses, allow_mixed_prompts)
    return ib.banks.add_models(bank, given, how=_way(how, selection), note=note)


@_changing(
    "recalibrate",
    click.argument("responses", nargs=-1, type=EXISTING),
    _HOW,
    mixed_prompts_option,
    _NOTE,
)
def recalibrate(
    bank: "Bank", *, responses: tuple[Path, ...], allow_mixed_prompts: bool, output_format: str, **asked: Any
) -> "Bank":
    """Fit BANK's items again with models that were added since, and with those of RESPONSES.

    Only difficulties change, with the old values as a prior: answers to items that a session chose make slopes look
    steeper than they are.

    \b
      itembank bank recalibrate bank-2 -o bank-3
      itembank bank recalibrate bank new-models.parquet --how random -o bank-2
    """  # noqa: D301
    del output_format
    given = _read(bank, responses, allow_mixed_prompts) if responses else None
    return ib.banks.recalibrate(bank, given, **asked)


@_changing(
    "retire",
    click.argument("items", nargs=-1, required=True, metavar="ITEMS..."),
    option("--reason TEXT", "Why; the bank's history keeps it.", required=True),
    option(
        "--status",
        "suspect: still counts; field-test: not in the score yet; active: counts again.",
        ["retired", "suspect", "field-test", "active"],
        default="retired",
    ),
    option("--label WORD", "Ending of the new score's id: clean makes NAME@1-clean.", default=""),
)
def retire(bank: "Bank", *, items: tuple[str, ...], reason: str, status: str, label: str, **_others: Any) -> "Bank":
    """Take ITEMS out of a bank's score: ids, or files of ids (text, one a line; a table; a selection).

    Retired items are no longer chosen and no longer count in scores. The new score has an id of its own. The bank keeps
    what it knows about the items: the old score can still be estimated (--target of itembank estimate), and if all
    count again (--status active), estimates are those of the bank before, to the last digit.

    \b
      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank bank retire bank law/17 law/18 --reason "duplicates of law/3" --label clean -o bank-2
      itembank bank retire bank-2 law/17 --status active --reason "the key was right" -o bank-3
    """  # noqa: D301
    if status == "active":
        refuse_unused(("label", False, "items that are taken out, not with --status active"))
        return ib.banks.restore(bank, item_ids(bank, items), reason=reason)
    return ib.banks.retire(bank, item_ids(bank, items), reason=reason, status=status, label=label)


@_changing(
    "note",
    click.argument("text"),
    option("--name NAME", "The benchmark's name: its scores are NAME@1, NAME@2, ...", default=""),
)
def note_command(bank: "Bank", *, text: str, name: str, **_others: Any) -> "Bank":
    """Write TEXT into a bank's history, and name the bank.

    \b
      itembank bank note bank "as published in May" --name mmlu_pro -o bank-named
    """  # noqa: D301
    return ib.banks.note(bank, text, name=name)


@_changing(
    "add-scores",
    click.argument("scores", type=FILE),
    option("--score COLUMN names", "A column of SCORES to keep. Repeatable.", many=True, required=True),
    _NOTE,
)
def add_scores(bank: "Bank", *, scores: Path, names: tuple[str, ...], note: str, **_others: Any) -> "Bank":
    """Keep SCORES of past models that are not made of the bank's items, such as a leaderboard's, by model_id.

    Scores from 0 to 1, or points up to 100; some may be missing. estimate, compare, plan and select then take --target
    COLUMN.

    \b
      itembank bank add-scores bank leaderboard.csv --score mmlu_full -o bank-2
      itembank estimate bank-2 new-model.csv --target mmlu_full
    """  # noqa: D301
    return ib.banks.add_scores(bank, scores, names, note=note)


def _read(bank: "Bank", paths: Sequence[Path], allow_mixed_prompts: bool) -> "ResponseMatrix":
    """Read results of models, or the answers of journals of sessions."""
    from itembank.bank.arguments import as_new_responses  # noqa: PLC0415
    from itembank.bank.bank_views import aside_items  # noqa: PLC0415
    from itembank.sessions.journal import is_journal  # noqa: PLC0415

    journals = [path for path in paths if is_journal(path)]
    if not journals:
        return as_new_responses(bank, list(paths), allow_mixed_prompts=allow_mixed_prompts)
    if len(journals) < len(paths):
        raise click.UsageError(
            "RESPONSES must be journals of sessions or other results, not both. Add them one after the other."
        )
    refuse_unused(("how", False, "results other than journals of sessions, which say it themselves"))
    from itembank.sessions.journal_sessions import journal_responses  # noqa: PLC0415

    found = journal_responses(bank, journals).responses
    aside = aside_items(bank, found.item_ids)
    if aside:
        note(
            f"{len(aside)} of {found.n_items} items that were asked no longer count in the score; the bank keeps their "
            f"answers: {visible(shown(aside))}."
        )
    return found


def _way(how: str | None, selection: Path | None) -> str | None:
    """Return how items were chosen, as it was given or as the selection that was run says."""
    from itembank.bank.marks import FIXED, RANDOM  # noqa: PLC0415

    if selection is None:
        return how
    if how is not None:
        raise click.UsageError("--selection says how the items were chosen. Leave --how out.")
    return RANDOM if ib.Selection.load(selection).is_random else FIXED


def item_ids(bank: "Bank", given: Sequence[str]) -> tuple[str, ...]:
    """Return the items that arguments name: ids, or files of ids. A name that the bank knows is an id."""
    known = set(ib.banks.whole_bank(bank).item_ids)
    found: dict[str, None] = {}
    for one in given:
        is_file = one not in known and os.path.isfile(one)  # noqa: PTH113 (no path at all is no file)
        found |= dict.fromkeys(ids_of_file(Path(one)) if is_file else (one,))
    return tuple(found)
