"""`itembank info`: what is in a bank, or in a file of responses."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.new_results import note_overall
from itembank.cli.options import checked_report_path, refuse_unused, typed_command, write_report
from itembank.cli.render import TABLE, Printer, is_verbose, note, progress, warnings_as_notes
from itembank.cli.signatures import argument, option, verb
from itembank.errors import shown, visible
from itembank.methods import entry_points_of

if TYPE_CHECKING:
    from itembank.bank.bank_history import Change
    from itembank.pages.render import Page

OUTLOOK = (
    "What the item model expects of better models: their score, and the share of it on items that tell them apart "
    "(open), that nearly all solve, or that nearly all fail"
)
WORDS = {
    "density": "share of responses that are known",
    "n_degenerate_items": "all models answered alike",
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
        out.record(
            found.to_dict(), "differences", rows, "info-differences", title=f"{bank} and {other}", heading="Differences"
        )
    elif bank.is_file():
        _show_responses(bank, out)
    elif log:
        _show_history(ib.load_bank(bank), out)
    else:
        _show_bank(bank, out)


def _show_bank(bank: Path, out: Printer) -> None:
    """Print what is in a bank."""
    from itembank.bank.banks import KNOWN_PARAMETERS

    loaded = ib.load_bank(bank)
    about, title = _about(loaded), _in_a_sentence(loaded)
    outlook = ib.diagnostics.outlook(loaded)
    about |= {"newest_model": outlook.newest and outlook.newest.isoformat(), "months_old": outlook.months_old()}
    about |= {"n_never_solved": outlook.n_never_solved, "outlook": outlook.rows()}
    rows = _scenario_rows(loaded)
    is_table = out.is_table
    if is_table and loaded.targets.n_scenarios == 1:
        rows = rows[1:]
    has_no_fit = not loaded.calibration.is_fitted or loaded.calibration.method == KNOWN_PARAMETERS
    facts = [name for name in FACTS if name != "converged" and about.get(name) != 0]
    facts += [*([] if about["converged"] else ["converged"]), *(["method"] if has_no_fit else [])]
    meaning = ". item_model_bias: cross-validated error of the scores that the item model predicts alone"
    scores = f"Scores of past models, in points{meaning if is_verbose() else ''}"
    brief = [name for name in rows[0] if name not in ("weight", "item_model_bias", "precision")]
    out.record(
        _explained(about) if is_table else about,
        "scenarios",
        rows,
        "info",
        title=title,
        facts=facts,
        heading=scores if loaded.n_models else "Scenarios",
        columns=list(rows[0]) if is_verbose() else brief,
        least=("precision", "item_model_bias", "weight"),
    )
    if is_table:
        if loaded.calibration.caution:
            note(loaded.calibration.caution)
        if is_verbose() and outlook.rows():
            TABLE.rows(outlook.rows(), "info", title=OUTLOOK)
        note_overall(loaded)
        note(f"To see more as a page: itembank report {bank} -o bank.html")


def _in_a_sentence(bank: "ib.Bank") -> str:
    """Say how large a bank is, and how good scores from few of its items are where that is known."""
    from itembank.planning.plan import overall_plan

    n_models = bank.n_calibration_models
    models = f"{n_models:,} past model{'' if n_models == 1 else 's'} and " if n_models else ""
    size = f"A bank of {models}{bank.n_total:,} items"
    subsets = () if bank.published is None else bank.published.subsets
    known = [(one.selection.n_items, one.measured["half_width"]) for one in subsets if "half_width" in one.measured]
    if not known and (plan := overall_plan(bank)) is not None:
        usual = plan.near(100)
        known = [(usual.n_items, usual.half_width)]
    if not known:
        return size
    whose = " for models like these" if n_models else ""
    return f"{size}; scores from {known[0][0]} items are good to ±{100.0 * known[0][1]:.1f} points{whose}"


def _show_history(bank: "ib.Bank", out: Printer) -> None:
    """Print every change of a bank."""
    changes = () if bank.history is None else bank.history.changes
    rows = [_in_words(change) if out.is_table else asdict(change) for change in changes]
    if not rows:
        note(f"Bank {bank.bank_id} has no history: it is as it was calibrated.")
    title = f"{visible(bank.name) or 'Bank'} {bank.version}, bank {bank.bank_id}, score {bank.target_id}"
    out.rows(rows, "info-log", title=title, least=("by", "bank", "link", "run with", "models"))


def _in_words(change: "Change") -> dict[str, Any]:
    """One change as a line of a table."""
    counts = {"+": change.items_added, "-": change.items_dropped, "changed ": change.items_changed}
    models = {"+": change.models_added, "-": change.models_dropped}
    told = change.arguments.get("run_with")  # a stranger's file may hold anything
    run_with = "; ".join(f"{name} {value}" for name, value in told.items()) if isinstance(told, dict) else ""
    return {
        "version": change.version,
        "at": change.at,
        "operation": change.operation,
        "items": _counted(counts),
        "models": _counted(models),
        "target_id": change.target_id,
        "note": change.note,
        **({"run with": run_with} if run_with else {}),
        "link": None if change.link is None else change.link.method,
        "bank": change.bank,
        "by": change.by,
    }


def _counted(counts: dict[str, Any]) -> str:
    """Say how many ids came, went and changed: '+3 -1'."""
    return " ".join(f"{sign}{ids.n}" for sign, ids in counts.items() if ids.n)


def _show_responses(path: Path, out: Printer) -> None:
    """Print what is in a file of responses."""
    from itembank.cli.import_results import about_responses, note_means, scenario_rows

    with warnings_as_notes():
        responses = ib.read_responses(path)
    about = about_responses(responses, path)
    about["responses"] = "right or wrong (family bernoulli)" if about["is_binary"] else "from 0 to 1 (family beta)"
    if any(part.n_trials is not None and part.n_trials.max() > 1 for part in responses.parts()):
        about["responses"] = "shares of several attempts (family binomial or beta-binomial)"
    del about["is_binary"]
    rows = scenario_rows(responses)
    out.record(
        {**about, "density": f"{about['density']:.4g} ({WORDS['density']})"} if out.is_table else about,
        "scenarios",
        rows,
        "info-responses",
        title=f"Answers of {about['n_models']:,} models to {about['n_items']:,} items",
        facts=("n_scenarios", "responses", "density", "mean_response", "n_trials", "costs"),
        heading="Scenarios; responses in points",
    )
    note_means(about, rows)


def _about(bank: "ib.Bank") -> dict[str, Any]:
    """Facts on the whole bank."""
    from itembank.bank.ability_axis import AbilityAxis
    from itembank.bank.bank_places import BESIDE_BANK
    from itembank.responses.prompts import prompts_in_words
    from itembank.responses.sizes import assumed_questions

    calibration, asked, origin = bank.calibration, prompts_in_words(bank.responses.items), {}
    if bank.cache.folder is not None and (bank.cache.folder / BESIDE_BANK).is_file():
        from itembank.publishing.recipes import origin_of

        origin = origin_of(bank.cache.folder)
    assumed = assumed_questions(bank.responses.items)
    n_negative = int((AbilityAxis.of(bank).slopes(calibration) < 0.0).sum())  # along the axis of the bank's page
    return {
        "bank": bank.bank_id,
        **_about_versions(bank),
        "n_models": bank.n_models,
        "n_items": bank.n_total,
        **({} if bank.rest is None else {"n_items_in_bank": bank.n_items}),
        **_about_responses(bank),
        **origin,
        **({"prompts": asked} if asked else {}),
        "method": calibration.method,
        "item_model": calibration.item_model,
        "family": calibration.parameters.family,
        "n_dims": calibration.n_dims,
        "converged": calibration.converged,
        "message": calibration.message,
        "score_correlation": calibration.score_correlation,
        **({"caution": calibration.caution} if calibration.caution else {}),
        "n_degenerate_items": int(calibration.is_degenerate.sum()),
        **({} if assumed is None else {"assumed_questions": assumed}),
        "n_negative_items": n_negative,
        "score_within_scenarios": bank.targets.within,
        "overall_score_over": bank.targets.across,
        "costs": sorted(bank.responses.costs),
    }


def _about_versions(bank: "ib.Bank") -> dict[str, Any]:
    """Name, version, parent and score of a bank that has a history."""
    if bank.history is None:
        return {}
    changes = bank.history.changes
    return {
        "name": bank.name or None,
        "version": bank.version,
        "parent": changes[-1].parents[0] if changes and changes[-1].parents else None,
        "target_id": bank.target_id,
        "n_items_aside": bank.n_aside,
    }


def _about_responses(bank: "ib.Bank") -> dict[str, Any]:
    """Facts on the past models' responses, or what is there without them."""
    from itembank.bank.known_scores import external_names

    if not (bank.published or bank.n_models):
        return {}
    if bank.published is None:
        external = list(external_names(bank.responses.models))
        return {
            "density": float(bank.responses.observed.mean()),
            "binary": bank.responses.is_binary,
            **({"external_scores": external} if external else {}),
        }
    about = bank.published
    subsets = sorted(about.subsets, key=lambda one: one.selection.n_items)
    return {
        "without_responses_of": f"{about.n_models} models of bank {about.whole_bank}",
        "items_to_run": [one.selection.n_items for one in subsets] or None,
        "measured": [{"n_items": one.selection.n_items, **one.measured} for one in subsets if one.measured],
    }


def _explained(about: dict[str, Any]) -> dict[str, Any]:
    """Say beside a number in a few words what it counts."""
    known = {name: WORDS[name] for name, value in about.items() if name in WORDS and value is not None}
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


def _scenario_rows(bank: "ib.Bank") -> list[dict[str, Any]]:
    """One row a scenario, and one for the overall score; a score is NaN if that of no past model is known."""
    import numpy as np

    targets, scores = bank.targets, bank.best_known_scores
    sizes = [*targets.scenario_sizes.tolist(), bank.n_total]
    weights = [*targets.scenario_weights.tolist(), 1.0]
    biases = [*bank.item_model_bias.tolist(), float("nan")]
    rows = []
    for j, name in enumerate(targets.names):
        row = {"target": name, "n_items": sizes[j], "weight": weights[j]}
        if bank.n_models:
            known = scores[~np.isnan(scores[:, j]), j]
            values = (known.mean(), known.min(), known.max()) if known.size else (np.nan,) * 3
            row |= zip(("mean_score", "lowest_score", "highest_score"), map(float, values), strict=True)
        rows.append({**row, "item_model_bias": biases[j]})
    if bank.parameters.precision is not None:  # of items together by the geometric mean
        logs = np.log(bank.parameters.precision)
        means = np.bincount(targets.scenario_index, logs) / np.bincount(targets.scenario_index)
        for row, precision in zip(rows, [*np.exp(means).tolist(), float(np.exp(logs.mean()))], strict=True):
            row["precision"] = precision
    return rows


@verb("report")
def report_command(
    *,
    source: Annotated[Path, argument(metavar="BANK|JOURNAL|STUDY", type=options.BankPath(file_okay=True))],
    output: Annotated[
        Path,
        option(
            "The page; its name must end in .html.",
            "-o",
            "--output",
            metavar="FILE",
            type=options.NEW_FILE,
            callback=checked_report_path,
        ),
    ],
    title: Annotated[str, "Title of the page.  [default: the name of what it is about]"] = "",
    bank: options.BankOfJournal,
) -> None:
    """Write a page about a bank, an adaptive session or a study: one HTML file that opens anywhere.

    For a bank it says how good estimates from a few of the items are, what is in the bank, how past models score, how
    hard its items are, what its abilities are and what a run costs. For a session's JOURNAL it shows the estimate after
    each answer, for a STUDY's folder which method came closest. The file loads nothing and sends nothing: mail it, or
    put it on a web server. estimate, compare, check and scaling write their own pages by --report.

      itembank report bank -o bank.html
      itembank report run.jsonl -o session.html
      itembank report study -o study.html
      itembank estimate bank new-model.csv --selection selection.json --report new-model.html

    Dates, sizes and makers of models come from columns of the model table with usual names (release_date, params, org,
    family, ...), texts of items from the item table: itembank import --models FILE --items FILE.
    """
    from itembank.sessions.journal import is_journal
    from itembank.sessions.journal_sessions import bank_of_session

    is_session = source.is_file() and is_journal(source)
    others = entry_points_of("itembank.reports").values() if source.is_dir() else ()
    made: Page | None = next((page for entry in others if (page := entry.load()(source)) is not None), None)
    if source.is_file() and not is_session:
        raise click.UsageError(f"{source} must be a bank's folder or the journal of a session.")
    refuse_unused(("bank", is_session, "a journal of a session"))
    known = {"title": title, "command": typed_command()}
    with warnings_as_notes():
        if made is not None:
            page = replace(made, title=title or made.title, command=known["command"])
        elif is_session:
            loaded = bank_of_session(source, None if bank is None else ib.load_bank(bank))
            with progress("report") as advance:
                session = ib.read_session(source, loaded, progress=advance)
                page = ib.pages.session_page(session, loaded, **known)
        else:
            page = ib.pages.bank_page(ib.load_bank(source), **known)
    write_report(page, output)
