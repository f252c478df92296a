"""`itembank info`: what is in a bank, or in a file of responses."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.new_results import importing_first
from itembank.cli.options import checked_report_path, refuse_unused, typed_command, write_report
from itembank.cli.render import TABLE, Printer, is_verbose, note, progress, warnings_as_notes
from itembank.cli.signatures import argument, verb
from itembank.errors import shell_word, shown, visible
from itembank.tables import plural
from itembank.tabular import picked

if TYPE_CHECKING:
    from itembank.bank.bank_history import Change

OUTLOOK = (
    "What the item model expects of better models: their score, and the share of it on items that tell them apart "
    "(open), that nearly all solve, or that nearly all fail"
)
WORDS = {
    "density": "share of responses that are known",
    "assumed_questions": "that a score counts as whose number of questions nobody gave",
    "n_never_solved": "no past model solved them",
    "n_negative_items": "stronger models fail more often; check their keys",
}
"""What numbers count, in a few words."""
FACTS = (
    *("bank", "version", "title", "licence", "harnesses", "without_responses_of", "items_to_run", "measured"),
    *("external_scores", "newest_model", "n_degenerate_items", "assumed_questions", "n_negative_items"),
    *("n_never_solved", "costs"),
)
"""Of a bank, without --verbose."""


@verb("info")
def info_command(
    *,
    bank: Annotated[Path, argument(type=options.BankPath(file_okay=True))],
    other: Annotated[Path | None, argument(type=options.BankPath())],
    log: Annotated[bool, "Show the bank's history: every change, the newest last."],
    out: options.Out,
) -> None:
    """Show what is in a bank: models, items, scores by scenario; with --verbose the item model and all else.

    BANK may also be a file of responses: models, items, share answered, kind of responses. JSON is one object with a
    list 'scenarios'; CSV has the scenarios alone. With OTHER, another bank: what differs in it, by score, scale, items
    and models.

      itembank info bank
      itembank info responses.parquet
      itembank info bank-2 --log
      itembank info bank bank-2
    """
    refuse_unused(("log", other is None and not bank.is_file(), "one bank"))
    if other is not None:
        found = ib.banks.diff(bank, other)
        rows = found.rows()
        if out.is_table:
            rows = [{**row, "ids": shown(row["ids"])} for row in rows]
        score = f"the same score as {bank}" if found.is_same_score else f"another score than {bank}"
        scale = "with other item parameters" if found.ids["items with other parameters"] else "on another scale"
        title = f"{other} gives {score}, {'on the same scale' if found.is_same_scale else scale}"
        out.record(found.to_dict(), "differences", rows, "info-differences", title=title, heading="Differences")
    elif bank.is_file():
        _show_responses(bank, out)
    elif log:
        loaded = ib.load_bank(bank)
        changes = () if loaded.history is None else loaded.history.changes
        rows = [_in_words(change) if out.is_table else asdict(change) for change in changes]
        if not rows:
            note(f"Bank {loaded.bank_id} has no history: it is as it was calibrated.")
        name = visible(loaded.name) or "The bank"
        title = f"{name} is at version {loaded.version} after {plural(len(changes), 'change')}"
        out.rows(rows, "info-log", title=title, least=("by", "bank", "link", "run with", "models"))
    else:
        _show_bank(bank, out)


def _show_bank(bank: Path, out: Printer) -> None:
    from itembank.bank.banks import FEW_MODELS, KNOWN_PARAMETERS

    loaded = ib.load_bank(bank)
    found = ib.info(loaded)
    about, rows = found.to_dict(), found.rows()
    is_table = out.is_table
    if is_table and len(rows) == 2:  # the only scenario, and the same again as the overall score
        rows = rows[1:]
    has_no_fit = about["method"] in {FEW_MODELS, KNOWN_PARAMETERS}
    facts = [name for name in FACTS if name != "converged" and about.get(name) != 0]
    facts += [*([] if about["converged"] else ["converged"]), *(["method"] if has_no_fit else [])]
    meaning = ". item_model_bias: cross-validated error of the scores that the item model predicts alone"
    scores = f"Scores of past models, in points{meaning if is_verbose() else ''}"
    brief = [name for name in rows[0] if name not in ("weight", "item_model_bias", "precision")]
    out.record(
        _explained(about, loaded) if is_table else about,
        "scenarios",
        rows,
        "info",
        title=found.sentence,
        facts=facts,
        heading=scores if about["n_models"] else "Scenarios",
        columns=list(rows[0]) if is_verbose() else brief,
        least=("precision", "item_model_bias", "weight"),
    )
    if is_table:
        if is_verbose() and about["outlook"]:
            TABLE.rows(about["outlook"], "info", title=OUTLOOK)
        for text in found.notes:
            note(text)
        note(f"To see more as a page: itembank report {shell_word(bank)} -o bank.html")


def _in_words(change: "Change") -> dict[str, Any]:
    counts = {"+": change.items_added, "-": change.items_dropped, "changed ": change.items_changed}
    models = {"+": change.models_added, "-": change.models_dropped}
    told = change.arguments.get("run_with")  # a stranger's file may hold anything
    run_with = "; ".join(f"{name} {value}" for name, value in told.items()) if isinstance(told, dict) else ""
    return {
        **picked(change, "version", "at", "operation"),
        "items": _counted(counts),
        "models": _counted(models),
        **picked(change, "target_id", "note"),
        **({"run with": run_with} if run_with else {}),
        "link": None if change.link is None else change.link.method,
        **picked(change, "bank", "by"),
    }


def _counted(counts: dict[str, Any]) -> str:
    """Say how many ids came, went and changed: '+3 -1'."""
    return " ".join(f"{sign}{ids.n}" for sign, ids in counts.items() if ids.n)


def _show_responses(path: Path, out: Printer) -> None:
    with warnings_as_notes(), importing_first([path]):
        found = ib.info(path)
    about, rows = {"file": str(path), **found.to_dict()}, found.rows()
    out.record(
        {**about, "density": f"{about['density']:.4g} ({WORDS['density']})"} if out.is_table else about,
        "scenarios",
        rows,
        "info-responses",
        title=found.sentence,
        facts=("n_scenarios", "responses", "density", "mean_response", "n_trials", "costs"),
        heading="Scenarios; responses in points",
    )
    for text in found.notes:
        note(text)


def degenerate_words(bank: "ib.Bank") -> str:
    """Say which items are degenerate: of shares those that the threshold makes so."""
    return "after the threshold, " * bool(bank.calibration.thresholds) + "all models answered alike"


def _explained(about: dict[str, Any], bank: "ib.Bank") -> dict[str, Any]:
    """Say beside a number in a few words what it counts."""
    words = {**WORDS, "n_degenerate_items": degenerate_words(bank)}
    known = {name: words[name] for name, value in about.items() if name in words and value is not None}
    rows = {name: f"{value:.4g} ({known[name]})" if name in known else value for name, value in about.items()}
    if "measured" in about:
        rows["measured"] = "; ".join(
            f"{one['n_items']} items: interval ±{100.0 * one['half_width']:.1f} points"
            + (f", mean error {100.0 * one['error']:.1f}" if "error" in one else "")
            for one in about["measured"]
        )
    for name in ("prompts", "notes"):
        if name in about:
            rows[name] = " ".join(about[name]) if name == "notes" else "; ".join(about[name])
    old = rows.pop("months_old", None)
    if old is not None:
        rows["newest_model"] = f"{rows['newest_model']}, {old:.0f} months ago"
    if not rows.pop("outlook"):
        del rows["n_never_solved"]
    if "version" in about:
        parent = rows.pop("parent")
        came_from = f", from bank {parent}" if parent else ""
        rows["version"] = f"{rows.pop('name') or ''} {rows['version']}{came_from}".strip()
    return rows


@verb("report")
def report_command(
    *,
    source: Annotated[Path, argument(metavar="BANK|JOURNAL|STUDY", type=options.BankPath(file_okay=True))],
    output: Annotated[
        Path,
        options.written(
            "The page; its name must end in .html.", "FILE", options.NEW_FILE, callback=checked_report_path
        ),
    ],
    bank: options.BankOfJournal,
) -> None:
    """Write a page about a bank, an adaptive session or a study: one HTML file that opens anywhere.

    For a bank it says how good estimates from a few of the items are, what is in the bank, how past models score, how
    hard its items are, what its abilities are and what a run costs. For a session's JOURNAL it shows the estimate after
    each answer, for a STUDY's folder which method came closest. The file loads nothing and sends nothing: mail it, or
    put it on a web server. estimate, check, compare, gate, scaling pretrain and scaling test-time write their own pages
    by --report.

      itembank report bank -o bank.html
      itembank report run.jsonl -o session.html
      itembank report study -o study.html
      itembank estimate bank new-model.csv --selection selection.json --report new-model.html

    Dates, sizes and makers of models come from columns of the model table with usual names (release_date, params, org,
    family, ...), texts of items from the item table: itembank import --models FILE --items FILE.
    """
    from itembank.pages.shown import page_at
    from itembank.sessions.journal import is_journal

    is_session = source.is_file() and is_journal(source)
    if source.is_file() and not is_session:
        raise click.UsageError(f"{source} must be a bank's folder, the journal of a session or the folder of a study.")
    refuse_unused(("bank", is_session, "a journal of a session"))
    with warnings_as_notes(), progress("report") as advance:
        page = page_at(source, bank=bank, progress=advance)
    write_report(replace(page, command=typed_command()), output)
