"""`itembank bank`: list and build ready banks; change banks, each change a new version."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import click

import itembank as ib
import itembank_living as living
from itembank.cli import options
from itembank.cli.command import Group
from itembank.cli.new_results import read_new_results
from itembank.cli.options import ids_of_file, refuse_unused
from itembank.cli.render import note, working
from itembank.cli.signatures import Choices, argument, option, verb
from itembank.errors import shown, visible
from itembank.tables import plural, points_of

if TYPE_CHECKING:
    from itembank.progress import ProgressCallback


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

    itembank bank list
    itembank bank build swebench-verified
    itembank bank add-models bank new-models.parquet --how random -o bank-2
    itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
    itembank info bank-2 --log
    itembank estimate bank-2 new-model.csv --target mmlu_pro@1
    """


@verb("list", bank_command)
def list_command(*, out: options.Out) -> None:
    """List the banks that every command takes as bank:NAME, and those that can be built.

    The table has the usual number of items to run, the cross-validated error of the overall score, and the half-width
    of 95 % intervals, both in points. JSON and CSV also have other numbers of items, source, licence, harnesses and
    notes.

      itembank bank list
      itembank bank list --format json
      itembank estimate bank:swebench-verified run/
    """
    from itembank_living.publishing.recipes import list_ready

    rows = list_ready()
    if not out.is_table:
        out.rows(rows, "bank-list")
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
    n_ready = sum(row["status"] in {"package", "built"} for row in rows)
    title = f"{n_ready} banks are ready, as bank:NAME, and {len(rows) - n_ready} can be built; errors in points"
    out.rows(shown_rows, "bank-list", title=title, least=("newest", "error"))
    for row in rows:
        words = [row["title"]] if row["title"] else []
        if row["source"] and row["status"] in {"package", "built"}:
            run_by = f", for {', '.join(row['harnesses'])}" if row["harnesses"] else ""
            state = f" at {row['revision'][:12]}" if row["revision"] else ""
            words.append(f"{row['licence']}, {row['source']}{state}{run_by}")
        if words:
            note(visible(f"{row['name']}: {'. '.join(words)}"))
    if any(row["status"] == "recipe" for row in rows):
        note("To build a recipe: itembank bank build NAME")


@verb("build", bank_command)
def build_command(
    *,
    recipe: Annotated[str, argument(metavar="NAME|FILE.toml")],
    files: Annotated[
        Path | None,
        option(
            "Read the source's files in this folder, and fetch nothing.",
            "--from",
            metavar="FOLDER",
            type=options.EXISTING_FOLDER,
        ),
    ],
    force: Annotated[bool, "Replace the bank of this name that was built before."],
    out: options.Out,
) -> None:
    """Build a ready bank: fetch public results, check them, calibrate, and keep the bank without the results.

    NAME is one of itembank bank list; or a FILE of your own says what to fetch, how to read it, and the bank's name
    (docs/starting.md). Then every command takes bank:NAME, without a connection. An interrupted download continues.
    Mind the licence of the results.

      itembank bank build swebench-verified
      itembank bank build bfcl --from BFCL-Result/2024-08-11
      itembank bank build ./mine.toml
    """
    with working("bank build") as report:
        built = living.build_ready(recipe, files=files, overwrite=force, progress=report)
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
    out.rows([row], "bank-build", title="Built")
    own = built.bank.items_to_run
    n_items = built.bank.n_items if own is None else own.n_items
    note(f"Next: itembank select bank:{built.name} -n {n_items} --ids list, run these items, then")
    note(f"      itembank estimate bank:{built.name} RESULTS")


How: TypeAlias = Annotated[
    str | None,
    option(
        "How each model's items were chosen, if its file does not say.",
        type=("complete", "random", "fixed", "adaptive"),
    ),
]


def _new_bank(*, is_required: bool = True) -> Choices:
    """Make the options of a bank that is written."""
    return {
        "output": options.output("the new bank", required=is_required),
        "force": option("Replace the bank at -o, if there is one.", type=bool),
        "out": options.Out,
    }


NewBank: TypeAlias = Annotated[Choices, _new_bank()]


def _change(name: str, bank: Path, new: Choices, change: "Callable[[ib.Bank, ProgressCallback], ib.Bank]") -> None:
    """Write what becomes of a bank, and say what it is."""
    from itembank.bank.bank_files import check_bank_destination

    check_bank_destination(new["output"], overwrite=new["force"])
    loaded = ib.load_bank(bank)
    with working(f"bank {name}") as report:
        changed = change(loaded, report)
    changed.save(new["output"], overwrite=new["force"])
    row = {
        "bank": changed.bank_id,
        "name": changed.name or None,
        "version": changed.version,
        "target_id": changed.target_id,
        "models": changed.n_models,
        "items": changed.n_items,
        "items_aside": changed.n_aside,
    }
    aside = f", {changed.n_aside} aside" if changed.n_aside else ""
    size = f"{plural(changed.n_models, 'model')} and {plural(changed.n_items, 'item')}{aside}"
    new["out"].rows([row], "bank", title=f"Version {changed.version} has {size}")
    note(f"Written to {new['output']}.")


@verb("add-items", bank_command)
def add_items(
    *,
    bank: options.Bank,
    responses: options.Responses,
    status: Annotated[
        str, option("field-test: not in the score yet.", type=("active", "suspect", "field-test"))
    ] = "active",
    dry_run: Annotated[bool, "Show what RESPONSES say about the new items, and write nothing."],
    how: How,
    allow_mixed_prompts: options.MixedPrompts,
    new: Annotated[Choices, _new_bank(is_required=False)],
) -> None:
    """Add new items to BANK, on its scale, with the models that answered them.

    RESPONSES need at least 3 models, better 10 to 20 that span the bank's abilities, with answers to new and to old
    items; past models need no answers to old ones. Old items keep their parameters. The score is then one of old and
    new items, and has an id of its own. --dry-run shows the new items' parameters and their errors; the error that the
    link adds to a score; and the past models that should be run on the new items next.

      itembank bank add-items bank questions-of-may.csv --dry-run
      itembank bank add-items bank questions-of-may.csv -o bank-2
    """
    if not dry_run:
        if new["output"] is None:
            raise click.UsageError("Missing option '-o' / '--output'.")

        def added(old: "ib.Bank", progress: "ProgressCallback") -> "ib.Bank":
            given = _read(old, responses, allow_mixed_prompts)
            changed = living.add_items(old, given, status=status, how=how, progress=progress)
            made = None if changed.history is None else changed.history.changes[-1].link
            if made is not None and made.linking_error is not None:
                adds = "adds" if changed.target_id != old.target_id else "would, once they count, add"
                note(
                    f"Linked by {plural(made.n_models, 'model')} and {plural(made.n_items, 'old item')}: the link "
                    f"{adds} a standard error of {points_of(made.linking_error)} points to scores."
                )
            scenarios = [one for one in changed.targets.scenarios if one not in old.targets.scenarios]
            if scenarios:
                note(f"New in the overall score, as {plural(len(scenarios), 'scenario')}: {visible(shown(scenarios))}.")
            return changed

        _change("add-items", bank, new, added)
        return
    nothing = "a bank that is written, not with --dry-run"
    refuse_unused((("output", "force", "status", "how"), False, nothing))
    loaded = ib.load_bank(bank)
    with working("bank add-items") as report:
        linked = living.link_items(loaded, _read(loaded, responses, allow_mixed_prompts), progress=report)
    error = linked.linking_error * linked.weight  # of the score of old and new items
    facts = {
        "bank": linked.bank_id,
        "linking_models": linked.n_models,
        "range_covered": linked.covered,
        "old_items": linked.anchors.height,
        "unlinked": list(linked.unlinked),
        "linking_error": error,
        "further_models": list(linked.further_models),
    }
    new["out"].record(
        facts,
        "items",
        linked.rows(),
        "bank-link",
        title=(
            f"{plural(linked.n_models, 'model')} would link {plural(len(linked.rows()), 'new item')} to the bank; the "
            f"link would add a standard error of {points_of(error)} points to scores"
        ),
        heading="New items, scores in points",
        least=("scenario", "n_answers", "mean_response"),
    )
    if linked.further_models:
        note(f"To know more, run these past models on the new items: {visible(shown(linked.further_models))}.")


@verb("add-models", bank_command)
def add_models(
    *,
    bank: options.Bank,
    responses: options.Responses,
    how: How,
    selection: Annotated[
        Path | None, option("The selection that the models ran, in place of --how.", type=options.FILE)
    ],
    allow_mixed_prompts: options.MixedPrompts,
    new: NewBank,
) -> None:
    """Add the models of RESPONSES to BANK; its items keep their parameters, its scores their meaning.

    RESPONSES are response files, logs of harnesses (also of itembank run), or journals of sessions.

      itembank bank add-models bank new-models.parquet --selection selection.json -o bank-2
      itembank bank add-models bank session.jsonl -o bank-2
    """
    from itembank.bank.marks import FIXED, RANDOM

    def added(old: "ib.Bank", _progress: "ProgressCallback") -> "ib.Bank":
        given = _read(old, responses, allow_mixed_prompts)
        if selection is not None and how is not None:
            raise click.UsageError("--selection says how the items were chosen. Leave --how out.")
        way = how if selection is None else RANDOM if ib.Selection.load(selection).is_random else FIXED
        return living.add_models(old, given, how=way)

    _change("add-models", bank, new, added)


@verb("recalibrate", bank_command)
def recalibrate(
    *,
    bank: options.Bank,
    responses: Annotated[tuple[Path, ...], argument(type=options.EXISTING, required=False)],
    how: How,
    allow_mixed_prompts: options.MixedPrompts,
    new: NewBank,
) -> None:
    """Fit BANK's items again with models that were added since, and with those of RESPONSES.

    Only difficulties change, with the old values as a prior: answers to items that a session chose make slopes look
    steeper than they are.

      itembank bank recalibrate bank-2 -o bank-3
      itembank bank recalibrate bank new-models.parquet --how random -o bank-2
    """

    def fitted(old: "ib.Bank", progress: "ProgressCallback") -> "ib.Bank":
        given = _read(old, responses, allow_mixed_prompts) if responses else None
        return living.recalibrate(old, given, how=how, progress=progress)

    _change("recalibrate", bank, new, fitted)


@verb("retire", bank_command)
def retire(
    *,
    bank: options.Bank,
    items: Annotated[tuple[str, ...], argument(metavar="ITEMS...")],
    reason: Annotated[str, option("Why; the bank's history keeps it.", metavar="TEXT")],
    status: Annotated[
        str,
        option(
            "suspect: still counts; field-test: not in the score yet; active: counts again.",
            type=("retired", "suspect", "field-test", "active"),
        ),
    ] = "retired",
    label: Annotated[str, option("Ending of the new score's id: clean makes NAME@1-clean.", metavar="WORD")] = "",
    new: NewBank,
) -> None:
    """Take ITEMS out of a bank's score: ids, or files of ids (text, one a line; a table; a selection).

    Retired items are no longer chosen and no longer count in scores. The new score has an id of its own. The bank keeps
    what it knows about the items: the old score can still be estimated (--target of itembank estimate), and if all
    count again (--status active), estimates are those of the bank before, to the last digit.

      itembank bank retire bank wrong-keys.txt --reason "wrong key" -o bank-2
      itembank bank retire bank law/17 law/18 --reason "duplicates of law/3" --label clean -o bank-2
      itembank bank retire bank-2 law/17 --status active --reason "the key was right" -o bank-3
    """
    refuse_unused(("label", status != "active", "items that are taken out, not with --status active"))

    def changed(old: "ib.Bank", _progress: "ProgressCallback") -> "ib.Bank":
        ids = item_ids(old, items)
        if status == "active":
            return living.restore(old, ids, reason=reason)
        return living.retire(old, ids, reason=reason, status=status, label=label)

    _change("retire", bank, new, changed)


@verb("note", bank_command)
def note_command(
    *,
    bank: options.Bank,
    text: Annotated[str, argument()],
    name: Annotated[str, option("The benchmark's name: its scores are NAME@1, NAME@2, ...", metavar="NAME")] = "",
    new: NewBank,
) -> None:
    """Write TEXT into a bank's history, and name the bank.

    itembank bank note bank "as published in May" --name mmlu_pro -o bank-named
    """
    _change("note", bank, new, lambda old, _: living.note(old, text, name=name))


@verb("add-scores", bank_command)
def add_scores(
    *,
    bank: options.Bank,
    scores: Annotated[Path, argument(type=options.FILE)],
    names: Annotated[
        tuple[str, ...], option("A column of SCORES to keep. Repeatable.", "--score", metavar="COLUMN", required=True)
    ],
    new: NewBank,
) -> None:
    """Keep SCORES of past models that are not made of the bank's items, such as a leaderboard's, by model_id.

    Scores from 0 to 1, or points up to 100; some may be missing. select, estimate, compare and session start then take
    --target COLUMN.

      itembank bank add-scores bank leaderboard.csv --score mmlu_full -o bank-2
      itembank estimate bank-2 new-model.csv --target mmlu_full
    """
    _change("add-scores", bank, new, lambda old, _: living.add_scores(old, scores, names))


def _read(bank: "ib.Bank", paths: Sequence[Path], allow_mixed_prompts: bool) -> "ib.ResponseMatrix":
    from itembank.bank.arguments import as_new_responses
    from itembank.bank.bank_views import aside_items
    from itembank.sessions.journal import is_journal

    journals = [path for path in paths if is_journal(path)]
    if not journals:
        given = read_new_results(bank, paths, allow_mixed_prompts=allow_mixed_prompts)
        return as_new_responses(bank, given)
    if len(journals) < len(paths):
        raise click.UsageError(
            "RESPONSES must be journals of sessions or other results, not both. Add them one after the other."
        )
    refuse_unused(("how", False, "results other than journals of sessions, which say it themselves"))
    from itembank.sessions.journal_sessions import journal_responses

    found, _, _ = journal_responses(bank, journals)
    aside = aside_items(bank, found.item_ids)
    if aside:
        note(
            f"{len(aside)} of {found.n_items} items that were asked no longer count in the score; the bank keeps their "
            f"answers: {visible(shown(aside))}."
        )
    return found


def item_ids(bank: "ib.Bank", given: Sequence[str]) -> tuple[str, ...]:
    """Return the items that arguments name: ids, or files of ids. A name that the bank knows is an id."""
    known = set(ib.banks.whole_bank(bank).item_ids)
    found: dict[str, None] = {}
    for one in given:
        is_file = one not in known and os.path.isfile(one)  # noqa: PTH113 (no path at all is no file)
        found |= dict.fromkeys(ids_of_file(Path(one)) if is_file else (one,))
    return tuple(found)
