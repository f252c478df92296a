"""What the commands of `itembank session` share: their journal, and the record of where a session stands."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.main import EXIT_IMPRECISE
from itembank.cli.new_results import note_flagged
from itembank.cli.options import BankPath, option
from itembank.cli.render import print_record, progress, warnings_as_notes
from itembank.cli.report_options import note_report, typed_command, write_report
from itembank.responses.score_names import without_only_scenario

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.sessions.session import AdaptiveSession

journal_argument = click.argument("journal", type=click.Path(exists=True, dir_okay=False, path_type=Path))
bank_option = option("--bank", "Where the bank lies now.  [default: where the journal says]", BankPath())
wait_option = option(
    "--wait SECONDS",
    "How long to wait for another command that has the journal open.",
    click.FloatRange(min=0.0),
    default=60.0,
)


def loaded_bank(bank: Path | None) -> "Bank | None":
    """Load the bank that was named, if one was."""
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415

    return None if bank is None else load_bank(bank)


def print_session(journal: Path, bank: "Bank | None", output_format: str, report: Path | None) -> None:
    """Print where a journal's session stands, write its page, and exit 3 when it ended imprecisely."""
    from itembank.sessions.journal import read_journal  # noqa: PLC0415
    from itembank.sessions.journal_sessions import bank_of_session, read_session  # noqa: PLC0415

    known = bank_of_session(journal, bank)
    with warnings_as_notes(), progress("session status") as advance:
        session = read_session(journal, known, progress=advance)
        estimate = session.estimate()
    times = read_journal(journal).times
    facts = {
        "model_id": session.model_id,
        "last_event": times[-1] if times else None,
        "bank": session.pool.bank_id,
        "target_id": session.pool.target_id,
        **session_facts(session),
        "ability": estimate.theta.tolist(),
        "ability_errors": estimate.standard_errors.tolist(),
        "method": estimate.scores.method,
        "typicality": estimate.scores.rows()[0]["typicality"],
    }
    rows = estimate.scores.rows()
    if output_format == "table":
        facts, rows = _main_facts(session, facts), _score_rows(rows)
    print_record(facts, "scores", rows, output_format, title=str(journal))
    if session.pool.past is not None:
        note_flagged(estimate.scores, session.pool.past.n_models)
    if report is not None:
        from itembank.pages.session_page import session_page  # noqa: PLC0415

        write_report(session_page(session, known, command=typed_command()), report)
    elif output_format == "table":
        note_report(report)
    exit_if_imprecise(session)


def session_facts(session: "AdaptiveSession") -> dict[str, Any]:
    """Say how far a session is."""
    return {
        "n_items": session.n_items,
        "n_pending": len(session.pending),
        "n_unasked": session.n_unasked,
        "costs": dict(session.costs),
        "left": dict(session.left),
        "whole_costs": {unit: whole for unit, (whole, _, _) in session.whole_costs.items()},
        "assumed_costs": {unit: amount for unit, (_, amount) in session.assumed_costs.items()},
        "reason_stopped": session.reason_stopped,
        "is_precise": session.is_precise,
        "conclusion": session.conclusion,
    }


def _main_facts(session: "AdaptiveSession", facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that a person reads; JSON has all."""
    from itembank.pages.theme import count  # noqa: PLC0415

    names = ("model_id", "bank", "n_items", "n_pending")
    words = {name: facts[name] for name in names} | {"costs": list(cost_words(session)), "method": facts["method"]}
    assumed = [
        f"{count(n)} of {count(session.n_items)} answers told no {unit}: {amount(total / n)} was assumed for each, "
        f"{amount(total)} in all"
        for unit, (n, total) in session.assumed_costs.items()
    ]
    words |= {"assumed": assumed} if assumed else {}
    return words | {"typicality": facts["typicality"], "state": session.conclusion or "Going on."}


def cost_words(session: "AdaptiveSession") -> Iterator[str]:
    """Write what was spent, what is left of the budget, and what the whole benchmark should cost this model.

    In the units of the budget, or where there is none in all that were told.
    """
    spent, left, passed, whole = session.costs, session.left, session.passed, session.whole_costs
    for unit in left or spent:
        words = [f"{amount(spent.get(unit, 0.0))} {unit} spent"]
        words += [f"{amount(left[unit])} left"] if unit in left else []
        words += [f"the maximum passed by {amount(passed[unit])}"] if unit in passed else []
        if unit in whole:
            value, low, high = whole[unit]
            words.append(f"the whole benchmark about {amount(value)} ({amount(low)} to {amount(high)})")
        yield ", ".join(words)


def amount(value: float) -> str:
    """Write an amount of a cost."""
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


def next_items(session: "AdaptiveSession", n_items: int, *, only_new: bool) -> tuple[tuple[str, ...], bool]:
    """Give the items that wait for their answers again, or choose new ones; also say whether they are new."""
    # None is added to those in hand: it would be chosen before they are answered, which no whole batch is.
    pending = () if only_new else session.pending[:n_items]
    return pending or session.ask(n_items), not pending


def item_rows(session: "AdaptiveSession", items: Sequence[str], *, is_new: bool) -> list[dict[str, Any]]:
    """Say of each item what a harness needs to find it."""
    table = session.pool.item_table
    known = table.filter(table["item_id"].is_in(list(items))).select("item_id", "scenario", "subscenario")
    places = {row["item_id"]: row for row in known.to_dicts()}
    return [{**places[item], "is_new": is_new} for item in items]


def exit_if_imprecise(session: "AdaptiveSession") -> None:
    """Exit 3 when a session has ended, nothing pending, without the precision that was asked for."""
    is_over = session.reason_stopped is not None and not session.pending
    if is_over and session.pool.spec.stopping.has_rules and not session.is_precise:
        click.get_current_context().exit(EXIT_IMPRECISE)


def in_words(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write amounts by unit as a table shows them."""
    return {
        name: [f"{amount:g} {unit}" for unit, amount in value.items()] if isinstance(value, Mapping) else value
        for name, value in facts.items()
    }


def _score_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Estimates with their intervals and the items behind them."""
    return [
        {
            "target": row["target"],
            "estimate": row["estimate"],
            f"{100 * row['level']:g} % interval": f"{row['low']:.4f} to {row['high']:.4f}",
            "items": f"{row['n_items']}/{row['n_total']}",
        }
        for row in without_only_scenario(rows)
    ]
