"""`itembank check`: do new models fit a bank, did items drift, and how good are estimates of full runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.check_tables import Checks, print_checks
from itembank.cli.command import Command, headed
from itembank.cli.main import EXIT_IMPRECISE
from itembank.cli.new_results import ignore_unknown_option, note_known_models, note_overall, read_new_results
from itembank.cli.options import (
    COUNT,
    FILE,
    bank_argument,
    format_option,
    ids_of_file,
    level_option,
    option,
    refuse_unused,
    responses_argument,
    seed_option,
)
from itembank.cli.render import note, progress, warnings_as_notes
from itembank.errors import visible

if TYPE_CHECKING:
    from itembank.auditing.bank_check_results import BankCheck
    from itembank.auditing.item_drift_results import ItemDrift
    from itembank.auditing.person_fit_results import FitCheck
    from itembank.bank.banks import Bank
    from itembank.progress import ProgressCallback
    from itembank.responses.responses import ResponseMatrix
    from itembank.sessions.journal_answers import JournalAnswers

FIT, DRIFT, ACCURACY = PARTS = ("fit", "drift", "accuracy")
ENOUGH_FOR_DRIFT = 5
"""New models from which on items are examined unasked."""

_accuracy_options = headed(
    "Accuracy, on models that ran everything",
    option(
        "-n --n-items sizes", "Number of items to choose. Repeatable.  [default: 30, 100 and 300]", COUNT, many=True
    ),
    option("--selection", "Check these chosen items instead.", FILE),
    level_option,
    seed_option,
)


@click.command("check", cls=Command)
@bank_argument
@responses_argument
@option("--only parts", "Examine this alone. Repeatable.  [default: all that RESPONSES allow]", PARTS, many=True)
@option(
    "--group NAME=FILE groups",
    "Items that are suspected of having leaked: one id a line, a table or a selection. Repeatable.",
    many=True,
)
@option("--reference", "Items that cannot have leaked; the others are compared with these.", FILE)
@option("--since [COLUMN=]DATE", "Look for drifted items over the models of this day (2025-01-31) or later.")
@ignore_unknown_option
@_accuracy_options
@format_option
def check_command(
    *,
    bank: Path,
    responses: tuple[Path, ...],
    parts: tuple[str, ...],
    groups: tuple[str, ...],
    reference: Path | None,
    since: str | None,
    ignore_unknown: bool,
    output_format: str,
    **accuracy: Any,
) -> None:
    """Check whether new models fit a bank, and how good its estimates are.

    RESPONSES are results of models that did not help to calibrate the bank, or journals of sessions. First it says what
    is known of changed prompts, versions and harnesses. Then come, as far as RESPONSES allow:

    \b
      fit       Does each model answer like the bank's, overall, on every group of
                items, and from the beginning of a session to its end?
      drift     Which items do new models answer otherwise? From 5 models on.
      accuracy  Of models that ran everything: items are chosen as itembank select
                does, scores estimated from these, and compared with the full run.

    The exit code is 3 when more models misfit, or lie outside their intervals, than chance explains (of a single model,
    when it does), or when something is known to have changed.

    \b
      itembank check bank new.csv
      itembank check bank new.csv --group public=leaked.txt --reference private.txt
      itembank check bank this-year.parquet --only drift --since 2025-01-01
      itembank check bank full-run.parquet --only accuracy -n 50 -n 200
      itembank check bank session.jsonl
    """  # noqa: D301
    from itembank.auditing.run_conditions import with_same_content  # noqa: PLC0415
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.estimation.observations import known_items  # noqa: PLC0415

    choices = _Choices(parts, groups, reference, since, accuracy)
    _refuse_idle(choices)
    loaded = load_bank(bank)
    with warnings_as_notes(), progress("check") as report:
        loaded = _bank_of(loaded, responses)
        answers = _read(loaded, responses)
        known = known_items(loaded, answers.responses, None, ignore_unknown=ignore_unknown)
        note_known_models(loaded, known.model_ids)
        same, changes = with_same_content(loaded, known)
        checks = _examined(loaded, answers._replace(responses=same), choices, changes, report)
    print_checks(checks, output_format)
    if checks.accuracy is not None:
        note_overall(loaded)
    if not checks.suits:
        click.get_current_context().exit(EXIT_IMPRECISE)


@dataclass(frozen=True)
class _Choices:
    """What is to be examined, and how."""

    parts: tuple[str, ...]
    groups: tuple[str, ...]
    reference: Path | None
    since: str | None
    accuracy: dict[str, Any]

    def wants(self, part: str) -> bool:
        """Whether a part is examined if it can be."""
        return not self.parts or part in self.parts

    def asks(self, part: str) -> bool:
        """Whether a part was asked for, and must be examined."""
        others: dict[str, Any] = {
            FIT: self.groups or self.reference,
            DRIFT: self.since is not None,
            ACCURACY: self.accuracy["sizes"] or self.accuracy["selection"],
        }
        return part in self.parts or bool(others[part])


def _refuse_idle(choices: _Choices) -> None:
    """Refuse options of what is not to be examined."""
    is_chosen = choices.accuracy["selection"] is None
    refuse_unused(
        *((name, is_chosen, "items that are to be chosen, not with --selection") for name in ("sizes", "seed")),
        *((name, choices.wants(ACCURACY), "--only accuracy") for name in choices.accuracy),
        *((name, choices.wants(FIT), "--only fit") for name in ("groups", "reference")),
        ("since", choices.wants(DRIFT), "--only drift"),
    )


def _examined(
    bank: "Bank", answers: "JournalAnswers", choices: _Choices, changes: tuple[str, ...], report: "ProgressCallback"
) -> Checks:
    """Examine what is asked for, and what the results allow."""
    from itembank.auditing.bank_check import ran_all_of_a_scenario  # noqa: PLC0415

    named = _named(choices.groups)
    if answers.sessions and choices.asks(DRIFT):
        raise click.UsageError(
            "drift is looked for among items that were not chosen by the answers, as those of adaptive sessions were. "
            "Give full runs or runs of a selection."
        )
    has_full_runs = ran_all_of_a_scenario(bank, answers.responses)
    if choices.wants(ACCURACY) and not choices.asks(ACCURACY):
        refuse_unused(*((name, has_full_runs, "models that ran everything") for name in ("level", "seed")))
    fit = drift = scores = None
    if choices.asks(FIT) or (choices.wants(FIT) and _can_examine(bank, answers.responses, report)):
        fit = _fit(bank, answers, named, choices.reference, report)
    is_enough = fit is not None and not answers.sessions and answers.responses.n_models >= ENOUGH_FOR_DRIFT
    if choices.asks(DRIFT) or (choices.wants(DRIFT) and is_enough):
        drift = _drift(bank, answers.responses, choices.since or "", report)
    if choices.asks(ACCURACY) or (choices.wants(ACCURACY) and has_full_runs):
        scores = _accuracy(bank, answers.responses, choices.accuracy, report)
    return Checks(bank.bank_id, changes, fit, drift, scores)


def _fit(
    bank: "Bank",
    answers: "JournalAnswers",
    groups: dict[str, tuple[str, ...]],
    reference: Path | None,
    report: "ProgressCallback",
) -> "FitCheck":
    """Examine how well models fit."""
    from itembank.auditing.person_fit import check_fit  # noqa: PLC0415

    return check_fit(
        bank,
        answers.responses,
        groups=groups,
        reference=None if reference is None else ids_of_file(reference),
        order=answers.order,
        sessions=answers.sessions,
        progress=report,
    )


def _drift(bank: "Bank", matrix: "ResponseMatrix", since: str, report: "ProgressCallback") -> "ItemDrift":
    """Look for drifted items since a day."""
    from itembank.auditing.item_drift import item_drift  # noqa: PLC0415

    column, _, day = since.rpartition("=")
    return item_drift(bank, matrix, since=day or None, date_column=column or None, progress=report)


def _bank_of(bank: "Bank", paths: Sequence[Path]) -> "Bank":
    """Return the bank with the score that journals were begun for; say so where it gives another by now."""
    from itembank.sessions.journal_answers import bank_of_journals, is_journal  # noqa: PLC0415

    journals = [path for path in paths if is_journal(path)]
    found = bank_of_journals(bank, journals) if journals else bank
    if found.target_digest != bank.target_digest:
        note(
            f"The sessions were begun for {visible(found.target_id)}: they are checked on its items, also those that "
            f"do not count in {visible(bank.target_id)}."
        )
    return found


def _read(bank: "Bank", paths: Sequence[Path]) -> "JournalAnswers":
    """Read results, or the answers of sessions with their order."""
    from itembank.sessions.journal_answers import JournalAnswers, is_journal, journal_responses  # noqa: PLC0415

    journals = [path for path in paths if is_journal(path)]
    if not journals:
        return JournalAnswers(read_new_results(bank, paths, same_content=False), {}, {})
    if len(journals) < len(paths):
        raise click.UsageError("RESPONSES must be journals of sessions or other results, not both. Check them apart.")
    return journal_responses(bank, journals)


def _can_examine(bank: "Bank", matrix: "ResponseMatrix", report: "ProgressCallback") -> bool:
    """Whether the fit of these models can be compared with that of the bank's own; else say why not."""
    from itembank.auditing.past_fit import why_not_examined  # noqa: PLC0415
    from itembank.auditing.run_conditions import marked_otherwise  # noqa: PLC0415

    reason = why_not_examined(bank, report) or marked_otherwise(bank, matrix)
    if reason:
        note(f"The fit of models is not examined, by that of the bank's own models left out: {reason}.")
    return not reason


def _named(groups: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read the item ids of NAME=FILE."""
    found = {}
    for text in groups:
        name, equals, path = text.partition("=")
        if not (name and equals and Path(path).is_file()):
            raise click.BadParameter(
                f"must be NAME=FILE with a file that is there, got {text!r}.", param_hint="--group"
            )
        if name in found:
            raise click.BadParameter(f"must name each group once, got {name!r} twice.", param_hint="--group")
        found[name] = ids_of_file(Path(path))
    return found


def _accuracy(
    bank: "Bank", matrix: "ResponseMatrix", accuracy: dict[str, Any], report: "ProgressCallback"
) -> "BankCheck":
    """Compare estimates from few items with full runs."""
    from itembank.auditing.bank_check import check_bank  # noqa: PLC0415
    from itembank.bank.selections import Selection  # noqa: PLC0415

    path = accuracy["selection"]
    return check_bank(
        bank,
        matrix,
        sizes=accuracy["sizes"],
        selection=None if path is None else Selection.load(path),
        level=accuracy["level"],
        rng=accuracy["seed"],
        progress=report,
    )
