"""Options of adaptive sessions that several commands share, and the spec that they and a file make."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.command import EXIT_IMPRECISE, SESSION
from itembank.cli.new_results import say_notes
from itembank.cli.options import refuse_unused, typed
from itembank.cli.render import TABLE, Printer, note, progress, warnings_as_notes
from itembank.cli.signatures import Choices, argument, option
from itembank.errors import shell_word
from itembank.responses.score_names import OVERALL, without_only_scenario
from itembank.selection.criteria import CRITERIA, VOptimality, criterion_of, uses_information
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.tables import amount, plural, points_of
from itembank.tabular import picked

_ITEMS: Choices = {
    "session_file": option(
        "Rarer choices, such as constraints: fields of SessionSpec. Options override its fields.",
        "--session",
        metavar="FILE.toml",
        type=options.FILE,
    ),
    "criterion": option(
        "How items are chosen. 'drawn': by chance, so that intervals cover whatever the model is.", type=CRITERIA
    ),
    "target": option("The wanted score, mean_win_rate, or an external one.", default=OVERALL),
    "predict": option("Predict this scenario's score from other scenarios; ask none of its items.", metavar="SCENARIO"),
    "errors": options.LostAnswers,
    "cost": option("Prefer items that say much for their cost: tokens, cost_usd, seconds, ...", metavar="UNIT"),
}
_LIMITS: Choices = {
    "n_items": option("Answers at most.", "--max-items", metavar="N", of=Budget),
    "max_cost": option(
        "Cost at most: --max-cost cost_usd=2.50. Items expected to cost more than is left are not asked; the last one "
        "may still exceed it. Repeatable.",
        metavar="UNIT=AMOUNT",
        multiple=True,
    ),
}
_PRECISION: Choices = {
    "half_width": option(
        "Stop when the interval of the target, or SCORE, is ±W (0.05 is ±5 points). Repeatable: all must be reached.",
        metavar="[SCORE=]W",
        multiple=True,
    )
}
_QUESTION: Choices = {
    "threshold": option("Is the target above T? Stop when sure.", metavar="T", of=Decision),
    "model": option("Is MODEL's score beaten? Stop when sure.", "--better-than", metavar="MODEL", of=Decision),
}

Limits: TypeAlias = Annotated[Choices, {"Limits": _LIMITS}]
Session: TypeAlias = Annotated[
    Choices, {"Choosing items": _ITEMS, "Limits": _LIMITS, "When to stop": {**_PRECISION, **_QUESTION}}
]
"""How items are asked and when to stop."""
_FEWER: Choices = {name: _ITEMS[name] for name in ("session_file", "criterion", "cost")}
ReplayedSession: TypeAlias = Annotated[Choices, {SESSION: {**_FEWER, **_LIMITS, **_PRECISION}}]
RunSession: TypeAlias = Annotated[
    Choices,
    {SESSION: {**{name: _ITEMS[name] for name in ("session_file", "criterion", "errors")}, **_LIMITS, **_PRECISION}},
]
"""Of a session that is begun and run at once: all else is in the file of `--session`."""

Journal: TypeAlias = Annotated[Path, argument(type=options.FILE)]
WAIT = 60.0
"""Seconds to wait for another command that has the journal open."""
NewUnits: TypeAlias = Annotated[bool, "Accept costs in units that are neither usual nor in the bank."]


def session_spec(choices: Mapping[str, Any], **more: Any) -> "ib.SessionSpec":
    """Make the spec of `Session` and more options, such as `--seed`: that of the file, changed by what options say."""
    from itembank.sessions.session_spec import read_session_fields

    given = typed({**choices, **more})
    path = choices["session_file"]
    found = {} if path is None else read_session_fields(path)
    found |= {name: given[name] for name in ("criterion", "target", "seed", "errors") if name in given}
    if "cost" in given:
        from itembank.bank.costs import as_cost_unit

        criterion = found.get("criterion", "v-optimal")
        if not isinstance(criterion, str) and uses_information(criterion):
            criterion = criterion_of(criterion, per_cost=True)
        found |= {
            "criterion": criterion,
            "cost": replace(as_cost_unit(found.get("cost", ib.CostUnit())), name=given["cost"]),
        }
    if "predict" in given:
        if "target" in given:
            raise click.UsageError("--predict names the wanted score itself: leave --target out.")
        constraints = found.get("constraints", ib.Constraints())
        at_most = {} if constraints.at_most is None else constraints.at_most
        if not isinstance(at_most, Mapping):
            raise click.UsageError(
                f"--predict asks nothing of one scenario, and constraints.at_most = {at_most} is of every one: name "
                "scenarios there, as in at_most = {other = 5}."
            )
        at_most = {**at_most, given["predict"]: 0}
        found |= {"target": given["predict"], "constraints": replace(constraints, at_most=at_most)}
    budget, limits = found.get("budget", Budget()), budget_of(choices)
    found["budget"] = Budget(limits.n_items or budget.n_items, limits.costs or budget.costs)
    found["stopping"] = _stopping(found, given)
    spec = ib.SessionSpec(**found)

    # a target that steers nothing is refused
    names_no_score = any("=" not in width for width in choices["half_width"])
    is_used = isinstance(spec.criterion, VOptimality) or spec.stopping.decision is not None or names_no_score
    refuse_unused(("target", is_used, "criterion v-optimal, --half-width W, --threshold or --better-than"))
    return spec


def note_predicted(bank: "ib.Bank", session: "ib.AdaptiveSession") -> None:
    """Say beforehand how well the score of a scenario that is never asked is predicted, if it is the target."""
    import numpy as np

    from itembank.planning.predicting import said_of

    pool, targets = session.pool, bank.targets
    name = pool.spec.target
    if pool.past is None or name not in targets.scenarios or pool.items.is_candidate[pool.target_weights > 0.0].any():
        return
    n_items = pool.spec.budget.n_items or int(pool.past.n_answered[-1])
    found, _ = pool.past.around(n_items, np.arange(len(targets.names)))[-1]
    note(said_of(bank, found, [str(name)])[1])


def budget_of(choices: Mapping[str, Any]) -> Budget:
    """Return the hard limits among the options."""
    return Budget(choices["n_items"], amounts("--max-cost", choices["max_cost"]))


def _stopping(found: Mapping[str, Any], given: Mapping[str, Any]) -> Stopping:
    from itembank.sessions.session_spec import CUSTOM

    stopping: Stopping = found.get("stopping", Stopping())
    target = found.get("target", OVERALL)
    score = target if isinstance(target, str) else CUSTOM
    changed: dict[str, Any] = {}
    if "half_width" in given:
        changed["half_width"] = amounts("--half-width", given["half_width"], unnamed=score)
    question: dict[str, Any] = {name: given.get(name) for name in ("threshold", "model")}
    if all(name in given for name in question):
        raise click.UsageError("--threshold and --better-than are two questions; give one of them.")
    if any(name in given for name in question):
        own = stopping.decision
        changed["decision"] = Decision(score, **question) if own is None else replace(own, **question)
    return replace(stopping, **changed)


def amounts(option: str, given: Sequence[str], *, unnamed: str | None = None) -> dict[str, float]:
    """Turn NAME=AMOUNT into a mapping; an amount alone is that of `unnamed`, if there is one."""
    result: dict[str, float] = {}
    for text in given:
        name, equals, amount = text.rpartition("=")
        name = name if equals else unnamed or ""
        try:
            number = float(amount)
        except ValueError:
            number = None
        if not name or number is None:
            form = "UNIT=AMOUNT, such as cost_usd=2" if unnamed is None else "a number, or SCORE=NUMBER"
            raise click.BadParameter(f"must be {form}, got {text!r}.", param_hint=option)
        if name in result:
            raise click.BadParameter(f"must be given once for {name!r}, got {text!r} too.", param_hint=option)
        result[name] = number
    return result


def loaded_bank(bank: Path | None) -> "ib.Bank | None":
    """Load the bank that was named, if one was."""
    return None if bank is None else ib.load_bank(bank)


def print_session(journal: Path, bank: "ib.Bank | None", out: Printer) -> None:
    """Print the state of a journal's session, and exit 3 if it ended imprecisely."""
    from itembank.sessions.journal import read_journal
    from itembank.sessions.journal_sessions import bank_of_session

    known = bank_of_session(journal, bank)
    with warnings_as_notes(), progress("session status") as advance:
        session = ib.read_session(journal, known, progress=advance)
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
    rows, title = estimate.scores.rows(), ""
    if out.is_table:
        title = _in_a_sentence(session, rows)
        facts, rows = _main_facts(session, facts), without_only_scenario(rows)
    shown = ("model_id", "bank", "costs", "assumed", "n_pending" if session.pending else "", "typicality")
    out.record(
        facts,
        "scores",
        rows,
        "session",
        title=title,
        facts=shown,
        heading="Scores, in points of 100",
        columns=("target", "estimate", "low", "high", "n_items", "n_total"),
    )
    say_notes(estimate.scores.notes)
    if out.is_table:
        note(f"To see this as a page: itembank report {shell_word(journal)} -o session.html")
    exit_if_imprecise(session)


def print_told(session: "ib.AdaptiveSession", n_told: int) -> None:
    """Print how far a session is after some answers: the score, then what else a person reads."""
    words = f"{plural(n_told, 'answer', 'are')} kept. {_in_a_sentence(session, session.estimate().scores.rows())}"
    facts = _main_facts(session, session_facts(session))
    shown = ("costs", "assumed", *(name for name in ("n_pending", "n_lost") if facts[name]))
    TABLE.record(facts, "", (), "session-tell", title=words, facts=shown)


def what_is_asked(session: "ib.AdaptiveSession", n_past: int) -> str:
    """Say in a sentence what a new session asks, and how well the score will be known after as many answers."""
    import numpy as np

    pool = session.pool
    spec, past, n_items = pool.spec, pool.past, pool.spec.budget.n_items
    most = "up to" if n_items is None or n_items >= session.n_unasked else f"at most {n_items:,} of"
    words = f"The session of {session.model_id} asks {most} {session.n_unasked:,} items"
    costs = [f"{amount(limit)} {unit}" for unit, limit in spec.budget.costs.items()]
    words += f" for at most {' and '.join(costs)}" if costs else ""
    until = [f"{name} is ±{points_of(width)} points" for name, width in spec.stopping.half_widths.items()]
    until += ["the question is settled"] if spec.stopping.decision is not None else []
    words += f" until {' and '.join(until)}" if until else ""
    if n_items is None or past is None or spec.target not in pool.basis.targets.names:
        return words
    found, _ = past.around(n_items, np.array([pool.basis.targets.names.index(spec.target)]))[-1]
    half = found.typical_half_width(level=spec.stopping.level)
    return f"{words}; these are good to about ±{points_of(half)} points for models like the {n_past:,} past ones"


def session_facts(session: "ib.AdaptiveSession") -> dict[str, Any]:
    """Say how far a session is."""
    return {
        "n_items": session.n_items,
        "n_pending": len(session.pending),
        "n_unasked": session.n_unasked,
        "n_lost": len(session.lost),
        "costs": dict(session.costs),
        "left": dict(session.left),
        "whole_costs": {unit: whole for unit, (whole, _, _) in session.whole_costs.items()},
        "assumed_costs": {unit: amount for unit, (_, amount) in session.assumed_costs.items()},
        **picked(session, "reason_stopped", "is_precise", "conclusion"),
    }


def _main_facts(session: "ib.AdaptiveSession", facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that a person reads; JSON has all."""
    words = {
        name: [f"{size:g} {unit}" for unit, size in value.items()] if isinstance(value, Mapping) else value
        for name, value in facts.items()
    }
    assumed = [
        f"no {unit} was told {plural(n, 'time')}: {amount(total / n)} was assumed for each, {amount(total)} in all"
        for unit, (n, total) in session.assumed_costs.items()
    ]
    return words | {"costs": list(cost_words(session)), "assumed": assumed}


def _in_a_sentence(session: "ib.AdaptiveSession", rows: Sequence[Mapping[str, Any]]) -> str:
    """Say how well the score is known, and why the session stopped."""
    target = session.pool.spec.target
    row = next((row for row in rows if row["target"] == target), rows[-1])
    name = "Score" if row["target"] == OVERALL else f"Score {row['target']}"
    of = f"{row['n_items']} of {row['n_total']} items" if row["target"] == OVERALL else plural(session.n_items, "item")
    of += "" if row["n_items"] or not session.n_items else ", none of them its own: it is predicted"
    return f"{name} {points_text(row)} from {of}. {session.conclusion or 'The session goes on.'}"


def points_text(row: Mapping[str, Any]) -> str:
    """Write a score in points with its interval: 61.2 ± 7.8, or both ends if it is cut at 0 or 100."""
    value, low, high = (100.0 * row[name] for name in ("estimate", "low", "high"))
    if math.isclose(value - low, high - value, abs_tol=0.05):
        return f"{value:.1f} ± {value - low:.1f} points"
    return f"{value:.1f} points ({low:.1f} to {high:.1f})"


def cost_words(session: "ib.AdaptiveSession") -> Iterator[str]:
    """Write what was spent, what is left of the budget, and what the whole benchmark should cost this model.

    In the units of the budget, or if there is none in all that were told.
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


def next_items(session: "ib.AdaptiveSession", n_items: int, *, only_new: bool) -> tuple[tuple[str, ...], bool]:
    """Give the items that wait for their answers again, or choose new ones; also say whether they are new."""
    # None is added to those in hand: it would be chosen before they are answered, which no whole batch is.
    pending = () if only_new else session.pending[:n_items]
    return pending or session.ask(n_items), not pending


def item_rows(session: "ib.AdaptiveSession", items: Sequence[str], *, is_new: bool) -> list[dict[str, Any]]:
    """Return what a harness needs to find each item."""
    table = session.pool.item_table
    known = table.filter(table["item_id"].is_in(list(items))).select("item_id", "scenario", "subscenario")
    places = {row["item_id"]: row for row in known.to_dicts()}
    return [{**places[item], "is_new": is_new} for item in items]


def exit_if_imprecise(session: "ib.AdaptiveSession") -> None:
    """Exit 3 if a session has ended, nothing pending, without the precision that was asked for."""
    is_over = session.reason_stopped is not None and not session.pending
    if is_over and session.pool.spec.stopping.has_rules and not session.is_precise:
        click.get_current_context().exit(EXIT_IMPRECISE)
