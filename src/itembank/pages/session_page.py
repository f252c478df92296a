"""The page of an adaptive session: the estimate after each answer, what each changed and cost, and why it stopped."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import visible
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, MEANING
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import (
    Answer,
    Answers,
    Block,
    Chart,
    Column,
    Data,
    Facts,
    Pair,
    Section,
    Table,
    Text,
    bank_provenance,
    bank_title,
    heads,
    noted,
)
from itembank.pages.grammar import ESTIMATE, marks, number, picture, ruled, score, span, tips
from itembank.pages.model_details import typicality_words
from itembank.pages.past_models import (
    OneModel,
    PastScores,
    scenario_blocks,
    score_answer,
    standing_chart,
    summary_words,
)
from itembank.pages.render import Page
from itembank.pages.theme import count, interval_words, money, points, unit_words
from itembank.selection.criteria import CRITERIA
from itembank.sessions.events import Asked, Failed, Told
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import CUSTOM
from itembank.tables import plural
from itembank.tabular import few_of_each

KEY = "session"
MOST_STEPS = 200
"""Answers after which the score is estimated again; of a longer session, evenly many."""
NOT_KNOWN = float("nan")


def session_page(session: AdaptiveSession, bank: Bank, *, title: str = "", command: str = "") -> Page:
    """Return the page of a session.

    Parameters
    ----------
    session : AdaptiveSession
        As `read_session` gives it.
    bank : Bank
        That it was started with.
    title : str
    command : str
        That writes the page; '' in Python.

    Examples
    --------
    >>> page = session_page(read_session("run.jsonl", bank), bank)  # doctest: +SKIP
    >>> page.save("session.html")  # doctest: +SKIP
    """
    scores = session.estimate().scores
    model = OneModel.of(scores, 0, KEY, session.pool.spec.wanted)
    past = PastScores.of(bank)
    standing, typicality = standing_chart(past, model), float(scores.typicality.typicality[0])
    words = "" if np.isnan(typicality) else typicality_words(typicality)
    beside = (*(() if standing is None else (standing,)), *((Text(words),) if words else ()))
    summary = f"{session.model_id} answered nothing yet: the estimate is that of any new model."
    after: tuple[Block, ...] = ()
    if session.n_items:
        summary = summary_words(past, model)
        data = steps_data(session)
        after = (steps_chart(session, data), telling_table(session, data))
    sections = (
        Section("After each answer", after),
        Section("Compared with past models", (*beside, *(scenario_blocks(past, model) or ()))),
        Section("How it was asked", (Facts(tuple(_settings(session, scores))),)),
    )
    items = np.array([session.pool.positions[item] for item in session.told], dtype=np.int64)
    answer = score_answer(bank, model, items, method=scores.method)
    return Page(
        title=title or f"{session.model_id} on {bank_title(bank)}",
        kind="Adaptive session",
        lead=(
            Text(summary),
            Answers((answer, _stop(session), _spent(session))),
            *map(noted, few_of_each(scores.notes, is_brief=False)),
        ),
        sections=tuple(one for one in sections if one.blocks),
        provenance=(*bank_provenance(bank), ("Model", session.model_id), ("Method", scores.method)),
        command=command,
    )


def _stop(session: AdaptiveSession) -> Answer:
    """Say whether the session is over, and why."""
    n_open = len(session.pending)
    waiting = f"{plural(n_open, 'question')} asked and not answered yet." if n_open else ""
    reason = session.reason_stopped
    if reason is None:
        return Answer("State", "Going on", words=waiting or "Not precise enough yet, and within its limits.")
    value = "Precise enough" if session.is_precise else "Ended"
    return Answer("State", value, session.conclusion, waiting)


def _spent(session: AdaptiveSession) -> Answer:
    """Say what the answers cost, and what is left of a budget."""
    costs = [money(amount, unit_words(unit)) for unit, amount in session.costs.items()]
    words = " ".join(_budget_words(session))
    n_failed, has_failed = 0, set[str]()
    for event in session.history:
        if isinstance(event, Failed):
            n_failed += event.item_id not in has_failed
            has_failed.add(event.item_id)
        elif isinstance(event, Asked | Told):
            has_failed.difference_update(event.item_ids if isinstance(event, Asked) else (event.item_id,))
    failed = f" {plural(n_failed, 'attempt')} failed." if n_failed else ""
    more = f"and {', '.join(costs[1:])}" if costs[1:] else ""
    if not costs:
        return Answer(
            "Spent", plural(session.n_items, "answer"), words=f"No costs were reported.{failed} {words}".strip()
        )
    told = f"For {plural(session.n_items, 'answer')}.{failed} {words}".strip()
    return Answer("Spent", costs[0], more, told)


def _budget_words(session: AdaptiveSession) -> Iterator[str]:
    """Say what is left of the budget, what was assumed, and what all items will have cost this model."""
    left = [money(amount, unit_words(unit)) for unit, amount in session.left.items()]
    if left:
        yield f"Left of the budget: {', '.join(left)}."
    for unit, amount in session.passed.items():
        spent = money(amount, unit_words(unit))
        yield f"The maximum was exceeded by {spent}: the last question cost more than expected."
    for unit, (n_silent, amount) in session.assumed_costs.items():
        yield (
            f"No cost was reported {plural(n_silent, 'time')}: "
            f"{money(amount / n_silent, unit_words(unit))} was assumed for each."
        )
    for unit, (value, low, high) in session.whole_costs.items():
        if unit in (session.left or session.costs):
            name = unit_words(unit)
            yield f"The whole benchmark should cost {money(value, name)} ({money(low, '')} to {money(high, name)})."


def _settings(session: AdaptiveSession, scores: ScoreEstimates) -> Iterator[Pair]:
    spec = session.pool.spec
    target = spec.wanted
    yield "Score wanted", f"{target}, {ESTIMANDS_IN_WORDS[scores.estimand]}"
    if target == CUSTOM:
        yield "Custom score", "A weighted mean of questions, with weights of its own."
    yield "Questions chosen by", CRITERIA.label(session.pool.criterion)
    rules = spec.stopping
    for name, width in rules.half_widths.items():
        yield "Stops when", f"the interval of {name} is at most ± {points(width)}"
    if rules.decision is not None:
        against = rules.decision.model or f"{rules.decision.threshold:g}"
        yield (
            "Stops when",
            f"it is {100 * rules.decision.confidence:g} % sure whether {target} is above {visible(against)}",
        )
    if rules.ability_error is not None:
        yield "Stops when", f"the standard error of ability is {rules.ability_error:g} or less"
    if spec.budget.n_items is not None:
        yield "At most", plural(spec.budget.n_items, "question")
    for unit, amount in spec.budget.costs.items():
        yield "At most", money(amount, unit_words(unit))
    yield "Interval", MEANING[scores.main_interval]
    yield "Questions left", f"{count(session.n_unasked)} may still be asked"


def steps_data(session: AdaptiveSession) -> Data:
    """Estimate the score again after each answer of a session, as it stood then; first before any answer.

    What an answer moved, and what was expected of it, is NaN where the state before it was not estimated.
    """
    places = [place for place, event in enumerate(session.history) if isinstance(event, Told)]
    shown = np.unique(np.linspace(0, len(places), min(len(places), MOST_STEPS) + 1).round().astype(np.int64))
    scenario = dict(session.pool.item_table.select("item_id", "scenario").iter_rows())
    unit = _shown_unit(session)
    rows: list[dict[str, Any]] = []
    theta: FloatArray = np.zeros(0)
    for n_told in shown.tolist():
        events = session.history[: places[n_told - 1] + 1] if n_told else ()
        then = AdaptiveSession(session.pool, model_id=session.model_id, events=events)
        made = then.estimate()
        at = made.scores.targets.index(session.pool.spec.wanted)
        value, low, high = (float(one[0, at]) for one in (made.scores.value, made.scores.low, made.scores.high))
        told = events[-1] if events else None
        row: dict[str, Any] = {"number": n_told, "item": "", "scenario": "", "expected": NOT_KNOWN, "given": NOT_KNOWN}
        row |= {"estimate": value, "low": low, "high": high, "half_width": 0.5 * (high - low)}
        row |= {"moved": NOT_KNOWN, "narrowed": NOT_KNOWN}
        row["cost"] = NOT_KNOWN if unit is None else then.costs.get(unit, 0.0)
        if isinstance(told, Told):
            row |= {"item": told.item_id, "scenario": scenario.get(told.item_id, ""), "given": told.response}
            if rows[-1]["number"] == n_told - 1:
                item = session.pool.basis.parameters.take(np.array([session.pool.positions[told.item_id]]))
                row["expected"] = float(probability(item, theta[None, :])[0, 0])
                row["moved"] = value - rows[-1]["estimate"]
                row["narrowed"] = rows[-1]["half_width"] - row["half_width"]
        rows.append(row)
        theta = made.theta
    return Data("steps", {name: [row[name] for row in rows] for name in rows[0]})


def _shown_unit(session: AdaptiveSession) -> str | None:
    """Which of the costs that were told stands in the table: money, or else the first."""
    return next((unit for unit in ("cost_usd", *session.costs) if unit in session.costs), None)


def steps_chart(session: AdaptiveSession, data: Data) -> Chart:
    """Draw the estimate with its interval after each answer."""
    columns = data.columns
    tip = tips(number=("Answers", ","), item="Question", **ESTIMATE)
    x = number("number", "Answers so far", tickCount=8, tickMinStep=1)
    y = score("estimate", f"Score: {session.pool.spec.wanted}")
    decision = session.pool.spec.stopping.decision
    has_goal = decision is not None and decision.target == session.pool.spec.wanted
    goal = (
        ruled("y", float(session.pool.threshold), color="@other", strokeDash=[5, 4], strokeWidth=1.5)
        if has_goal
        else ()
    )
    last = len(data) - 1
    title = (
        f"After {plural(columns['number'][last], 'answer')} the interval is ± {points(columns['half_width'][last])}; "
        f"before the first it was ± {points(columns['half_width'][0])}"
    )
    marked = sorted({0, last // 4, last // 2, 3 * last // 4, last})
    said = "; ".join(
        f"after {columns['number'][k]:,}: {points(columns['estimate'][k])}, "
        f"{interval_words(columns['low'][k], columns['high'][k])}"
        for k in marked
    )
    level = f"Band: {100.0 * session.pool.spec.stopping.level:g} % interval after each answer."
    n_told = sum(isinstance(event, Told) for event in session.history)
    drawn = f" Of {plural(n_told, 'answer')}, {last:,} are shown, evenly chosen." if n_told > last else ""
    rules = " Dashed: the threshold that decides." if has_goal else ""
    spec = picture(
        marks("area", x, span(y), color="@main", opacity=0.18),
        goal,
        marks("line", x, y, color="@main", strokeWidth=2.2),
        marks("point", x, y, tip=tip, filled=True, color="@main", size=34),
        height=320,
    )
    return Chart(title, spec, (data,), f"{title}. {said}.", note=f"{level}{rules}{drawn}")


def telling_table(session: AdaptiveSession, data: Data) -> Table:
    """List the answers, those first that moved the estimate most."""
    moved = np.abs(np.nan_to_num(np.asarray(data.columns["moved"], dtype=np.float64)))
    order = [k for k in np.argsort(-moved, kind="stable").tolist() if data.columns["item"][k]]
    chosen = Data("telling", {name: [values[k] for k in order] for name, values in data.columns.items()})
    unit = _shown_unit(session)
    digits = 0 if unit is None or session.costs[unit] >= 100.0 else 3
    return Table(
        "Answers that moved the estimate most",
        chosen,
        (
            *heads("number", "item", "given", "moved", "expected", "narrowed"),
            Column("estimate", "Estimate after", "score"),
            Column("half_width", "Interval (±)", "score", 1),
            *heads("scenario"),
            *(() if unit is None else (Column("cost", f"{unit_words(unit)} so far", "number", digits),)),
        ),
        n_shown=15,
    )
