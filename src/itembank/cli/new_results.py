"""Results as analyses read them: files that `itembank import` wrote, or others that need no choice."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import itembank as ib
from itembank.cli.render import detail, is_verbose, note
from itembank.errors import DataError, shell_word, shown, visible
from itembank.readers.reading_specs import ReadingSpec, Repeats
from itembank.responses.error_kinds import Errors
from itembank.responses.score_names import OVERALL

if TYPE_CHECKING:
    from itembank.tabular import Note

MOST_NAMED = 3
"""Paths that advice repeats."""


@contextmanager
def importing_first(
    paths: Sequence[Path], jq: str | None = None, then: str = "Then give responses.parquet here."
) -> Iterator[None]:
    """Say of an error whose advice is an option of reading that it is one of `itembank import`, which comes first."""
    try:
        yield
    except DataError as error:
        from itembank.cli.import_results import import_command

        here, there = click.get_current_context().command.params, import_command.params
        own = {name for one in here for name in one.opts} - {name for one in there for name in one.opts}
        if own.issuperset(re.findall(r"(?<![\w-])--[a-z-]*[a-z]", str(error))):
            raise
        files = " ".join(shell_word(path) for path in paths) if len(paths) <= MOST_NAMED else "FILES"
        by = "" if jq is None else f"--jq {shell_word(jq)} "
        raise DataError(
            f"{error}\nHow files are read is chosen when they are imported: itembank import {files} {by}[OPTIONS] "
            f"-o responses.parquet. {then}"
        ) from error


def read_results(paths: Sequence[Path], jq: str | None = None) -> "ib.ResponseMatrix":
    """Read results as they are, or by a program of jq."""
    with importing_first(paths, jq):
        return ib.read_responses(paths, spec=ReadingSpec(jq=jq))


def read_new_results(
    bank: "ib.Bank",
    paths: Sequence[Path],
    selection: "ib.Selection | None" = None,
    *,
    match: str = "auto",
    same_content: bool = True,
    allow_mixed_prompts: bool = False,
    errors: Errors | None = None,
    jq: str | None = None,
    keep_others: bool = False,
) -> "ib.ResponseMatrix":
    """Read results as the bank's were read; of items outside the selection say how many are ignored, or keep them.

    With `same_content`, items whose content is not the bank's are refused, and other prompts unless they were allowed;
    items outside the selection may have any. Attempts by a program of jq are counted where the bank's are.
    """
    from itembank.readers.agreement import check_same_content, check_same_prompts, only_items, read_new_responses

    repeats: Repeats = "error" if jq is None or bank.responses.n_trials is None else "mean"
    spec = ReadingSpec(jq=jq, repeats=repeats, allow_mixed_prompts=allow_mixed_prompts, errors=errors)
    with importing_first(paths, jq):
        matrix = whole = read_new_responses(paths, bank.responses.items, spec=spec, match=match)
    if selection is not None:
        matrix, others = only_items(matrix, selection.item_ids)
        if others:
            names = f": {visible(shown(others))}" if is_verbose() else ""
            words = f"{len(others)} of {whole.n_items} items are not in the selection and are ignored{names}."
            (detail if keep_others else note)(words)
    if same_content:
        check_same_content(matrix.items, bank.responses.items)
        check_same_prompts(matrix.items, bank.responses.items, is_ignored=allow_mixed_prompts)
    return whole if keep_others else matrix


def note_overall(bank: "ib.Bank") -> None:
    """Say how the overall score is made of the scenarios if that makes a difference, or what takes its place."""
    from itembank.responses.how_read import HowRead

    words = bank.targets.overall_in_words
    if words:
        note(f"The overall score is {words}.")
    k = sorted({*HowRead(bank.responses.items).powers.tolist()} - {0})
    if k:
        note(f"Responses are {' and '.join(f'pass^{one}' for one in k)}: the chance that so many trials all succeed.")
    if bank.headline is not None:
        words = bank.headline.in_words
        detail(f"{words[0].upper()}{words[1:]}.")


def note_known_models(bank: "ib.Bank", model_ids: Iterable[str]) -> None:
    """Say which models the bank was calibrated on: its estimates of them are better than of a new model."""
    from itembank.estimation.notes import note_on_past_models

    say_notes(note_on_past_models(bank.past_models, tuple(model_ids)))


def say_notes(notes: "Iterable[Note]") -> None:
    """Say what a reader must know of a result, but what warnings say; with --verbose what follows from it."""
    from itembank.estimation.notes import MISSING, WARNING
    from itembank.tabular import few_of_each

    for words in few_of_each([one for one in notes if one.kind not in {WARNING, MISSING}], is_brief=not is_verbose()):
        note(f"Note: {words}")


def typicality_text(row: Mapping[str, Any], main: str = OVERALL) -> str:
    """Return the typicality of a row's model, once: beside its overall score, or the main one."""
    is_shown = row["target"] == main and row["typicality"] is not None
    return f"{row['typicality']:.2f}" if is_shown else ""
