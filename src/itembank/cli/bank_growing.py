"""`itembank bank link | add-items | add-models | recalibrate`: banks that learn of new items and models."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.bank_writing import loaded_for_change, write_bank, writing
from itembank.cli.new_results import mixed_prompts_option
from itembank.cli.options import FILE, bank_argument, format_option, refuse_unused, responses_argument
from itembank.cli.render import note, print_record, progress, warnings_as_notes
from itembank.errors import shown, visible

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.living.link_items import LinkedItems
    from itembank.responses.responses import ResponseMatrix

_HOW = click.option(
    "--how",
    type=click.Choice(["complete", "random", "fixed", "adaptive"]),
    help="How each model's items were chosen, where its file does not say.",
)
_SELECTION = click.option(
    "--selection", type=FILE, help="The items that the models were asked, in place of --how: random or fixed."
)
_NOTE = click.option("--note", "text", default="", metavar="TEXT", help="Why; the bank's history keeps it.")
_METHOD = click.option(
    "--method",
    type=click.Choice(["fixed", "stocking-lord"]),
    default="fixed",
    show_default=True,
    help="How new items come onto the bank's scale.",
)


@click.command("link")
@bank_argument
@responses_argument
@_METHOD
@mixed_prompts_option
@format_option
def link(
    *, bank: Path, responses: tuple[Path, ...], method: Any, allow_mixed_prompts: bool, output_format: str
) -> None:
    """Show what RESPONSES say of items that are new to BANK, and write nothing.

    Each new item with its parameters on the bank's scale and their errors; the error that the link adds to a score; the
    old items that moved; and the models of the bank that should be run on the new items next.

    \b
      itembank bank link bank answers-to-old-and-new-items.csv
    """  # noqa: D301
    from itembank.bank.arguments import as_new_responses  # noqa: PLC0415
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.living.link_items import link_items  # noqa: PLC0415

    with warnings_as_notes(), progress("bank link") as report:
        loaded = load_bank(bank)
        given = as_new_responses(loaded, list(responses), allow_mixed_prompts=allow_mixed_prompts)
        linked = link_items(loaded, given, method=method, progress=report)
    print_record(
        _facts(linked), "items", linked.rows(), output_format, least=("scenario", "n_answers", "mean_response")
    )
    if linked.further_models:
        note(f"To know more, run these models of the bank on the new items: {visible(shown(linked.further_models))}.")


@click.command("add-items")
@bank_argument
@responses_argument
@_METHOD
@click.option(
    "--status",
    type=click.Choice(["active", "suspect", "field-test"]),
    default="active",
    show_default=True,
    help="field-test: not in the score yet.",
)
@_HOW
@mixed_prompts_option
@_NOTE
@writing
def add_items(**given: Any) -> None:
    """Add the items that BANK does not know to it, on its scale, with the models that answered them.

    RESPONSES hold at least 3 models, better 10 to 20 that span the bank's abilities, with answers to new and to old
    items; models of the bank need no old ones. Old items keep their parameters. The score is then one of old and new
    items, and has an id of its own. See itembank bank link for the new items' parameters.

    \b
      itembank bank add-items bank questions-of-may.csv --note "questions of May" -o bank-2
    """  # noqa: D301
    from itembank.living.growing import add_items as add  # noqa: PLC0415

    changed = _written("bank add-items", add, **given)
    made = None if changed.history is None else changed.history.changes[-1].link
    if made is not None and made.linking_error is not None:
        note(
            f"Linked by {made.n_models} models and {made.n_items} old items: the link adds a standard error of "
            f"{100 * made.linking_error:.2f} points to scores."
        )


@click.command("add-models")
@bank_argument
@responses_argument
@_HOW
@_SELECTION
@mixed_prompts_option
@_NOTE
@writing
def add_models(
    *,
    bank: Path,
    responses: tuple[Path, ...],
    how: str | None,
    selection: Path | None,
    allow_mixed_prompts: bool,
    text: str,
    force: bool,
    output: Path,
    output_format: str,
) -> None:
    """Add the models of RESPONSES to BANK; its items keep their parameters, its scores what they mean.

    RESPONSES are response files, logs of harnesses (also of itembank run), or journals of sessions.

    \b
      itembank bank add-models bank new-models.parquet --selection selection.json -o bank-2
      itembank bank add-models bank session.jsonl -o bank-2
    """  # noqa: D301
    from itembank.living.growing import add_models as add  # noqa: PLC0415

    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes():
        given = _read(loaded, responses, allow_mixed_prompts=allow_mixed_prompts)
        changed = add(loaded, given, how=_way(how, selection), note=text)
    write_bank(changed, output, output_format, force=force)


def _written(
    command: str,
    change: Callable[..., "Bank"],
    *,
    bank: Path,
    responses: tuple[Path, ...],
    allow_mixed_prompts: bool,
    text: str,
    force: bool,
    output: Path,
    output_format: str,
    **asked: Any,
) -> "Bank":
    """Let a bank learn of responses, write the new one, and return it."""
    loaded = loaded_for_change(bank, output, force=force)
    with warnings_as_notes(), progress(command) as report:
        given = _read(loaded, responses, allow_mixed_prompts=allow_mixed_prompts) if responses else None
        changed = change(loaded, given, note=text, progress=report, **asked)
    write_bank(changed, output, output_format, force=force)
    return changed


def _read(bank: "Bank", paths: Sequence[Path], *, allow_mixed_prompts: bool) -> "ResponseMatrix":
    """Read results of models, or the answers that journals of sessions hold."""
    from itembank.bank.arguments import as_new_responses  # noqa: PLC0415
    from itembank.bank.bank_views import aside_items  # noqa: PLC0415
    from itembank.sessions.journal_answers import is_journal, journal_responses  # noqa: PLC0415

    journals = [path for path in paths if is_journal(path)]
    if not journals:
        return as_new_responses(bank, list(paths), allow_mixed_prompts=allow_mixed_prompts)
    if len(journals) < len(paths):
        raise click.UsageError("RESPONSES must be journals of sessions or other results, not both. Add them in turn.")
    refuse_unused(("how", False, "results that are no journals of sessions, which say it themselves"))
    found = journal_responses(bank, journals).responses
    aside = aside_items(bank, found.item_ids)
    if aside:
        note(
            f"{len(aside)} of {found.n_items} items that were asked do not count in the score any more; the bank keeps "
            f"their answers: {visible(shown(aside))}."
        )
    return found


def _way(how: str | None, selection: Path | None) -> str | None:
    """Say how items were chosen, as it was given or as the selection that was run says."""
    from itembank.bank.marks import FIXED, RANDOM  # noqa: PLC0415
    from itembank.bank.selections import Selection  # noqa: PLC0415

    if selection is None:
        return how
    if how is not None:
        raise click.UsageError("--selection says how the items were chosen. Leave --how out.")
    return RANDOM if Selection.load(selection).is_random else FIXED


@click.command("recalibrate")
@bank_argument
@click.argument("responses", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--parameters",
    type=click.Choice(["difficulties", "all"]),
    default="difficulties",
    show_default=True,
    help="all: also slopes, on a new scale, from models whose items were not chosen by their own answers.",
)
@_HOW
@mixed_prompts_option
@_NOTE
@writing
def recalibrate(**given: Any) -> None:
    """Let BANK's items learn from models that were added since, and from those of RESPONSES.

    Answers to items that a session chose make slopes look steeper than they are: they only move difficulties, with the
    old values as a prior.

    \b
      itembank bank recalibrate bank-2 -o bank-3
      itembank bank recalibrate bank new-models.parquet --how random --parameters all -o bank-2
    """  # noqa: D301
    from itembank.living.growing import recalibrate as learn  # noqa: PLC0415

    _written("bank recalibrate", learn, **given)


def _facts(linked: "LinkedItems") -> dict[str, Any]:
    """Sum up the link as a whole."""
    other = linked.other
    return {
        "bank": linked.bank_id,
        "method": linked.method,
        "linking_models": linked.n_models,
        "range_covered": linked.covered,
        "old_items": len(linked.anchors.item_ids),
        "unlinked": list(linked.anchors.unlinked),
        "linking_error": linked.linking_error,
        "stocking_lord_slope": None if other is None else other.slope,
        "stocking_lord_intercept": None if other is None else other.intercept,
        "stocking_lord_differs_by": None if other is None else other.difference,
        "further_models": list(linked.further_models),
    }
