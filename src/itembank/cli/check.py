"""`itembank check`: which items are wrong, do new models fit a bank, did items drift, how good are estimates."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
from itembank.auditing.item_audit_names import ORDERS, REASONS, SAME_FOR_ALL
from itembank.cli import options
from itembank.cli.command import EXIT_FAILED, EXIT_IMPRECISE
from itembank.cli.new_results import note_overall, read_new_results, read_results
from itembank.cli.options import ids_of_file, is_bank, refuse_unused, report_result
from itembank.cli.render import TABLE, Printer, detail, is_verbose, note, print_object, working, wrapped
from itembank.cli.signatures import Choices, argument, option, verb
from itembank.errors import N_SHOWN, visible
from itembank.responses.score_names import OVERALL
from itembank.spreadsheets import write_guarded_csv
from itembank.tables import plural

if TYPE_CHECKING:
    import polars as pl

    from itembank.auditing.bank_check import BankCheck
    from itembank.auditing.check import Checks
    from itembank.auditing.item_audit import ItemAudit
    from itembank.auditing.item_drift import ItemDrift
    from itembank.auditing.person_fit import FitCheck
    from itembank.pages.render import Page

MOST_DRIFTED = 20
"""Drifted items in a table."""
COLUMNS = ("item_id", "reason", "P(defect)", "evidence", "text", "mean", "item-rest")
"""What a terminal has room for; other formats and the written table have the rest."""
LONGEST_TEXT = 120
"""Characters of an item's text that a table shows."""
FIT, DRIFT, ACCURACY = PARTS = ("fit", "drift", "accuracy")

_ITEMS: Choices = {
    "known": option(
        "Items known to be bad (ids one a line, or a table with a column item_id): learn from them what a fault looks "
        "like, and say how well they are found.",
        type=options.FILE,
    ),
    "choices": option("Table of the answers given: model_id, item_id, choice.", type=options.FILE),
    "by": option(
        "Also find items that differ between models: family, size, date, ...: a column of the model table.",
        metavar="COLUMN",
    ),
    "clusters": option("With --by: models with the same value here, a base model, count as one.", metavar="COLUMN"),
    "order": option(
        "Which come first: those most probably defective; those that the best models fail, but not similar items; "
        "or those whose answers fit another key best.",
        "--sort",
        type=tuple(ORDERS),
        default="probability",
    ),
    "reasons": option("Print the items with this reason. Repeatable.", "--reason", type=tuple(REASONS), multiple=True),
    "n_rows": option("Flagged items to print.", "--most", metavar="N", type=options.COUNT, default=20),
    "output": options.written(
        "Write all items to this file: .csv or .parquet.", "FILE", callback=options.checked_table_path
    ),
    "fail_on": option("Exit with code 1 when an item has this reason. Repeatable.", type=tuple(REASONS), multiple=True),
    "report": options.Report,
}
_MODELS: Choices = {
    "parts": option(
        "Examine this alone. Repeatable.  [default: all that RESPONSES allow]", "--only", type=PARTS, multiple=True
    ),
    "groups": option(
        "Items that may have leaked: one id a line, a table or a selection. Repeatable.",
        "--group",
        metavar="NAME=FILE",
        multiple=True,
    ),
    "reference": option("Items that cannot have leaked; the others are compared with these.", type=options.FILE),
    "since": option("Look for drift among models of this day (2025-01-31) or later.", metavar="[COLUMN=]DATE"),
    "sizes": option(
        "Accuracy, on models that ran everything: number of items to choose. Repeatable.  [default: 30, 100 and 300]",
        "-n",
        "--n-items",
        type=options.COUNT,
        multiple=True,
    ),
    "selection": option("Accuracy: check these chosen items instead.", type=options.FILE),
    "ignore_unknown": options.IgnoreUnknown,
    "match": options.Match,
}


@verb("check")
def check_command(
    *,
    sources: Annotated[tuple[Path, ...], argument(metavar="BANK|RESPONSES...", type=options.BankPath(file_okay=True))],
    items: Annotated[Choices, {"Items: of a bank alone, or of RESPONSES alone": _ITEMS}],
    models: Annotated[Choices, {"New models: a BANK, then RESPONSES": _MODELS}],
    jq: options.Jq,
    out: options.Out,
) -> None:
    """Find what is wrong: with the items of a benchmark, or with new models on a bank.

    Given a BANK, or RESPONSES of at least five models (better thirty, the best among them), it finds items that have a
    wrong key, make no sense, were asked twice, or differ between models. A person should read what is flagged: answers
    show that something is odd, not what.

    Given a BANK and RESPONSES of new models, or journals of sessions, it reports changed prompts, versions and
    harnesses, and as far as RESPONSES allow:

      fit       Does each model answer like past models, overall, on every group of
                items, and from the beginning of a session to its end?
      drift     Which items do new models answer differently? Needs 5 models.
      accuracy  For models that ran everything: choose items as itembank select
                does, estimate scores from these, compare with the full run.

    The exit code is then 3 if more models misfit, or are outside their intervals, than chance explains; if the only
    model does; or if records changed.

      itembank check responses.parquet --report items.html
      itembank check responses.parquet --reason wrong-key --fail-on wrong-key
      itembank check bank --by family --format json
      itembank check bank new.csv --group public=leaked.txt --reference private.txt
      itembank check bank this-year.parquet --only drift --since 2025-01-01
      itembank check bank full-run.parquet --only accuracy -n 50 -n 200
    """
    if len(sources) > 1 and is_bank(sources[0]):
        refuse_unused((items, False, "a bank or RESPONSES alone, whose items are examined"))
        _check_models(sources[0], sources[1:], models, jq, out)
    else:
        refuse_unused((models, False, "a BANK and RESPONSES of new models"))
        _check_items(sources, items, jq, out)


def _check_items(sources: tuple[Path, ...], asked: Mapping[str, Any], jq: str | None, out: Printer) -> None:
    has_bank = is_bank(sources[0])
    refuse_unused(("clusters", asked["by"] is not None, "--by COLUMN"), ("jq", not has_bank, "RESPONSES"))
    reasons, fail_on, output = asked["reasons"], asked["fail_on"], asked["output"]
    with working("check") as report:
        given = ib.load_bank(sources[0]) if has_bank else read_results(sources, jq)
        known = None if asked["known"] is None else ids_of_file(asked["known"])
        how = {name: asked[name] for name in ("choices", "by", "clusters", "order")}
        audit = ib.diagnostics.audit_items(given, known=known, **how, progress=report)
    if "differs" in fail_on and audit.differential is None:
        raise click.UsageError("--fail-on differs needs groups that are compared, of 8 models or more: --by COLUMN.")
    chosen = audit.having(reasons) if reasons else audit.flagged
    if output is not None:
        options.write_table(audit.table, output, partial(write_guarded_csv, audit.table))
        note(f"{plural(audit.table.height, 'item')} written to {output}.")
    _print_audit(audit, chosen.head(asked["n_rows"]), out)
    if chosen.is_empty():
        note(f"No item is {' or '.join(dict.fromkeys(reasons)) or 'flagged'}.")
    if chosen.height > asked["n_rows"]:
        note(f"{asked['n_rows']} of {chosen.height} shown: --most N for more, -o FILE for all.")
    if isinstance(given, ib.Bank) and (words := ib.diagnostics.outlook(given).in_words):
        detail(words)
    report_result(asked["report"], out, partial(_page, audit, given, sources))
    found = [f"{audit.counts[reason]} {reason}" for reason in dict.fromkeys(fail_on) if audit.counts[reason]]
    if found:
        click.echo(f"Failed: there are items flagged {', '.join(found)} (--fail-on).", err=True)
        click.get_current_context().exit(EXIT_FAILED)


def _page(audit: "ItemAudit", given: "ib.Bank | ib.ResponseMatrix", sources: Sequence[Path], typed: str) -> "Page":
    from itembank.pages.audit_page import audit_page
    from itembank.pages.blocks import bank_title, benchmark_title

    if isinstance(given, ib.Bank):
        name = bank_title(given)
    else:
        scenarios = given.items["scenario"].unique(maintain_order=True).to_list()
        name = benchmark_title(sources[0].stem if len(sources) == 1 else "", scenarios, given.n_items)
    return audit_page(audit, title=f"Audit of {name}", command=typed)


def _print_audit(audit: "ItemAudit", chosen: "pl.DataFrame", out: Printer) -> None:
    facts, shown = audit.to_dict(), COLUMNS if is_verbose() else COLUMNS[:-2]
    columns = [name for name in shown if name != "text" or name in chosen.columns]
    if not out.is_table:
        out.record(facts, "items", chosen.to_dicts(), "check-items")
        return
    told = {"n_models": facts["n_models"]}
    for name, count in audit.counts.items():
        if count:
            told[name] = f"{count}: {REASONS[name]}"
            told[name] += f"; not flagged: --reason {name}" if name in SAME_FOR_ALL else ""
    if audit.labels is not None:  # how well known bad items are found
        first = "".join(
            f", {100.0 * share:.0f} % of the first {n} flagged" for n, share in audit.labels["first"].items()
        )
        told["known to be bad"] = f"{audit.labels['n_bad']}: AUC {audit.labels['area']:.3f}{first}"
    TABLE.record(
        told,
        "items",
        [_audit_row(row) for row in chosen.to_dicts()],
        "check-items",
        title=f"Flagged: {audit.said}",
        heading=f"Items by {audit.order}",
        columns=columns if chosen.height else (),
        least=("text", "item-rest", "mean"),
    )
    if audit.differential is not None:
        by_group = audit.differential.scores.to_dicts()
        TABLE.rows(
            [{**row, "items that differ": f"{row['n_flagged']}/{row['n_items']}"} for row in by_group],
            "check-items",
            title=f"Scores by {audit.differential.column}, in points at equal ability",
            columns=("group", "scenario", "score_effect", "items that differ", "flagged_effect"),
        )
        for one in audit.differential.notes:
            note(f"Note: {visible(one)}")
    for caution in audit.cautions:
        note(f"Note: {visible(caution)}")


def _audit_row(row: dict[str, Any]) -> dict[str, Any]:
    text = row.get("text")
    return {
        **row,
        "reason": row["reasons"],
        "P(defect)": "-" if row["reasons"] == "duplicate" else f"{row['probability']:.2f}",
        "item-rest": f"{row['item_rest']:.2f}",
        "text": None if text is None else text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}...",
    }


def _check_models(
    bank: Path, responses: tuple[Path, ...], asked: Mapping[str, Any], jq: str | None, out: Printer
) -> None:
    """Examine how models fit a bank, whether its items drifted, and how good its estimates are."""
    from itembank.auditing.check import check_models
    from itembank.sessions.journal import is_journal

    def wants(part: str) -> bool:
        return not asked["parts"] or part in asked["parts"]

    is_chosen = asked["selection"] is None
    refuse_unused(
        ("sizes", is_chosen, "items that are to be chosen, not with --selection"),
        (("sizes", "selection"), wants(ACCURACY), "--only accuracy"),
        (("groups", "reference"), wants(FIT), "--only fit"),
        ("since", wants(DRIFT), "--only drift"),
    )
    loaded, path = ib.load_bank(bank), asked["selection"]
    with working("check") as report:
        has_journals = any(map(is_journal, responses))
        refuse_unused(("jq", not has_journals, "results other than journals of sessions"))
        read = partial(read_new_results, loaded, responses, match=asked["match"], jq=jq, same_content=False)
        checks = check_models(
            loaded,
            list(responses) if has_journals else read(),
            only=asked["parts"],
            groups=_named(asked["groups"]),
            reference=None if asked["reference"] is None else ids_of_file(asked["reference"]),
            since=asked["since"],
            sizes=asked["sizes"],
            selection=None if path is None else ib.Selection.load(path),
            ignore_unknown=asked["ignore_unknown"],
            progress=report,
        )
    for text in checks.notes:
        note(f"Note: {visible(text)}")
    print_checks(checks, out)
    if checks.accuracy is not None:
        note_overall(loaded)
    if not checks.suits:
        click.get_current_context().exit(EXIT_IMPRECISE)


def _named(groups: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read the item ids of NAME=FILE."""
    found = {}
    for text in groups:
        name, equals, path = text.partition("=")
        if not (name and equals and Path(path).is_file()):
            raise click.BadParameter(f"must be NAME=FILE with a file that exists, got {text!r}.", param_hint="--group")
        if name in found:
            raise click.BadParameter(f"must name each group once, got {name!r} twice.", param_hint="--group")
        found[name] = ids_of_file(Path(path))
    return found


def print_checks(checks: "Checks", out: Printer) -> None:
    """Print what was found: one JSON object, one table of CSV, or one section below the other."""
    if out.is_json:
        print_object(checks.to_dict(), "check")
    elif out.is_csv:
        out.rows(checks.rows(), "check")
    else:
        from itembank.auditing.person_fit import ONE_RUN, SHIFT

        changes = [f"Changed: {sentence}" for sentence in checks.changes]
        parts: list[tuple[Callable[[Any], None], Any]] = [(_say, changes or None), (_print_fit, checks.fit)]
        parts += [(_print_drift, checks.drift), (_print_accuracy, checks.accuracy)]
        for number, (show, found) in enumerate((show, found) for show, found in parts if found is not None):
            if number:
                click.echo()
            show(found)
        for hint in checks.hints:
            (detail if hint in {ONE_RUN, SHIFT} else note)(visible(hint))  # these two are true of every check


def _say(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        click.echo(wrapped(visible(sentence)))


def _print_fit(fit: "FitCheck") -> None:
    _say(fit.verdicts)
    names = ("model_id", "items", "misfit", "typicality", "p_value", "verdict", "groups")
    rows = [{**row, "items": row["n_items"]} for row in fit.rows()]
    title = "Fit of each model, compared with past models"
    TABLE.rows(rows, "check", title=title, columns=names, least=("misfit", "items"))
    named = fit.groups.filter(kind="named").rename({"n_items": "items", "n_reference": "others"}).to_dicts()
    if named:
        title = "Suspected items: score in points, and what the other answers suggest"
        columns = ("model_id", "group", "items", "others", "mean", "expected", "difference", "p_value", "verdict")
        TABLE.rows(named, "check", title=title, columns=columns, least=("items", "others"))


def _print_drift(drift: "ItemDrift") -> None:
    _say(drift.verdicts)
    drifted = map(vars, drift.drifted[:MOST_DRIFTED])
    rows = [{**row, "models": row["n_models"], "z": f"{row['z']:.1f}"} for row in drifted]
    if rows:
        title = "Drifted items: points more or less than other answers suggest"
        columns = ("item_id", "scenario", "models", "difference", "z", "verdict")
        TABLE.rows(rows, "check", title=title, columns=columns, least=("models", "scenario"))
    if len(drift.drifted) > MOST_DRIFTED:
        note(f"{len(drift.drifted) - MOST_DRIFTED} more drifted items: take --format json for all.")


def _print_accuracy(check: "BankCheck") -> None:
    _say(check.verdicts if is_verbose() or len(check.verdicts) <= N_SHOWN else check.in_brief)
    is_brief = bool(check.verdicts) and not is_verbose()  # the overall scores alone
    names = ["model_id", *([] if is_brief else ["target"]), "n_items", "n_total", "truth", "estimate", "low", "high"]
    TABLE.rows(
        [{**row, "level": check.level} for row in check.rows() if row["target"] == OVERALL or not is_brief],
        "check",
        title=f"{'Overall scores' if is_brief else 'Scores'} and errors in points",
        columns=(*names, "error", "expected_error", "verdict"),
        least=("expected_error", "truth", "verdict"),
    )
