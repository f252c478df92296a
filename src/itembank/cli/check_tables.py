"""How `itembank check` prints what it found: as sections below each other, one JSON object, or one CSV table."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from itembank.cli.render import TABLE, Printer, detail, is_verbose, note, print_object, wrapped
from itembank.errors import visible
from itembank.responses.score_names import OVERALL

if TYPE_CHECKING:
    from itembank.auditing.bank_check import BankCheck
    from itembank.auditing.check import Checks
    from itembank.auditing.item_drift import ItemDrift
    from itembank.auditing.person_fit import FitCheck

MOST_DRIFTED = 20
"""Drifted items in a table."""


def print_checks(checks: "Checks", out: Printer) -> None:
    """Print what was found: one JSON object, one table of CSV, or one section below the other."""
    if out.is_json:
        print_object(checks.to_dict(), "check")
    elif out.is_csv:
        out.rows(checks.rows(), "check")
    else:
        _print_sections(checks)


def _print_sections(checks: "Checks") -> None:
    """Print one section below the other, with an empty line between them."""
    from itembank.auditing.person_fit import ONE_RUN, SHIFT

    sections: list[Callable[[], None]] = []
    if checks.changes:
        sections.append(lambda: _say([f"Changed: {sentence}" for sentence in checks.changes]))
    if checks.fit is not None:
        sections.append(partial(_print_fit, checks.fit))
    if checks.drift is not None:
        sections.append(partial(_print_drift, checks.drift))
    if checks.accuracy is not None:
        sections.append(partial(_print_accuracy, checks.accuracy))
    for number, show in enumerate(sections):
        if number:
            click.echo()
        show()
    for hint in checks.hints:
        (detail if hint in {ONE_RUN, SHIFT} else note)(visible(hint))  # these two are true of every check


def _say(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        click.echo(wrapped(visible(sentence)))


def _print_fit(fit: "FitCheck") -> None:
    _say(fit.verdicts)
    names = ("model_id", "misfit", "typicality", "p_value", "verdict", "groups")
    rows = [{"items" if name == "n_items" else name: row[name] for name in ("n_items", *names)} for row in fit.rows()]
    columns = ("model_id", "items", *names[1:])
    title = "Fit of each model, compared with past models"
    TABLE.rows(rows, "check", title=title, columns=columns, least=("misfit", "items"))
    named = [
        {
            "model_id": row["model_id"],
            "group": row["group"],
            "items": row["n_items"],
            "others": row["n_reference"],
            **{name: row[name] for name in ("mean", "expected", "difference", "p_value", "verdict")},
        }
        for row in fit.groups.filter(kind="named").iter_rows(named=True)
    ]
    if named:
        title = "Suspected items: score in points, and what the other answers suggest"
        TABLE.rows(named, "check", title=title, least=("items", "others"))


def _print_drift(drift: "ItemDrift") -> None:
    _say(drift.verdicts)
    rows = [
        {
            "item_id": row["item_id"],
            "scenario": row["scenario"],
            "models": row["n_models"],
            "difference": row["difference"],
            "z": f"{row['z']:.1f}",
            "verdict": row["verdict"],
        }
        for row in map(vars, drift.drifted[:MOST_DRIFTED])
    ]
    if rows:
        title = "Drifted items: points more or less than other answers suggest"
        TABLE.rows(rows, "check", title=title, least=("models", "scenario"))
    if len(drift.drifted) > MOST_DRIFTED:
        note(f"{len(drift.drifted) - MOST_DRIFTED} more drifted items: take --format json for all.")


def _print_accuracy(check: "BankCheck") -> None:
    _say(check.verdicts)
    is_brief = bool(check.verdicts) and not is_verbose()  # the overall scores alone
    names = ["model_id", *([] if is_brief else ["target"]), "n_items", "n_total", "truth", "estimate", "low", "high"]
    TABLE.rows(
        [{**row, "level": check.level} for row in check.rows() if row["target"] == OVERALL or not is_brief],
        "check",
        title=f"{'Overall scores' if is_brief else 'Scores'} and errors in points",
        columns=(*names, "error", "expected_error", "verdict"),
        least=("expected_error", "truth", "verdict"),
    )
