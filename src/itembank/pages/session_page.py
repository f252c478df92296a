"""The page of an adaptive session: what was learnt from each answer, what it cost, and why it stopped."""

from collections.abc import Iterator

import numpy as np

from itembank.bank.banks import Bank
from itembank.errors import visible
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, MEANING
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Answer, Answers, Block, Caution, Facts, Section, Text
from itembank.pages.common import Pair, bank_provenance, plural, unit_words
from itembank.pages.given_answers import GivenAnswers, expectation_chart
from itembank.pages.model_details import typicality_words
from itembank.pages.past_models import OneModel, PastScores, scenario_blocks, standing_chart
from itembank.pages.render import Page
from itembank.pages.score_answers import score_answer
from itembank.pages.session_steps import (
    session_steps,
    steps_chart,
    steps_data,
    telling_table,
    telling_words,
    wanted_score,
)
from itembank.pages.theme import count, money, points
from itembank.selection.criteria import CRITERIA
from itembank.sessions.events import Failed
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import CUSTOM

KEY = "session"


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
    model = _model(session, scores)
    items, given, trials = _answers(session)
    sections = (
        Section("After each answer", tuple(_step_blocks(session))),
        Section("Beside past models", tuple(_past_blocks(bank, model))),
        Section("Expected and given", tuple(_expected_blocks(bank, items, given, trials, scores))),
        Section("How it was asked", (Facts(tuple(_settings(session, scores))),)),
    )
    answer = score_answer(bank, model, items, method=scores.method)
    return Page(
        title=title or session.model_id,
        kind="Adaptive session",
        lead=(Answers((answer, _stop(session), _spent(session))), *_cautions(session, bank, scores)),
        sections=tuple(one for one in sections if one.blocks),
        provenance=(*bank_provenance(bank), ("Model", session.model_id), ("Method", scores.method)),
        command=command,
    )


def _model(session: AdaptiveSession, scores: ScoreEstimates) -> OneModel:
    return OneModel(
        model_id=session.model_id,
        key=KEY,
        targets=scores.targets,
        value=scores.value[0],
        low=scores.low[0],
        high=scores.high[0],
        n_items=tuple(scores.n_items[0].tolist()),
        n_total=tuple(scores.n_total.tolist()),
        level=scores.level,
        is_flagged=bool(scores.typicality.is_flagged[0]),
        target=wanted_score(session),
    )


def _answers(session: AdaptiveSession) -> tuple[IntArray, FloatArray, FloatArray]:
    """Positions in the bank, responses and trials of all answers, each (n,)."""
    told = session.told
    positions = np.array([session.pool.positions[item] for item in told], dtype=np.int64)
    given = np.array([one.response for one in told.values()], dtype=np.float64)
    return positions, given, np.array([one.n_trials or 1 for one in told.values()], dtype=np.float64)


def _stop(session: AdaptiveSession) -> Answer:
    """Say whether the session is over, and why."""
    n_open = len(session.pending)
    waiting = f"{plural(n_open, 'item')} asked and not answered yet." if n_open else ""
    reason = session.reason_stopped
    if reason is None:
        return Answer("State", "Going on", words=waiting or "No rule of precision holds yet, and no limit is reached.")
    value = "Precise enough" if session.is_precise else "Ended"
    return Answer("State", value, session.conclusion, waiting)


def _spent(session: AdaptiveSession) -> Answer:
    """Say what the answers cost, and what is left of a budget."""
    costs = [money(amount, unit_words(unit)) for unit, amount in session.costs.items()]
    words = " ".join(_budget_words(session))
    n_failed = sum(isinstance(event, Failed) for event in session.history)
    failed = f" {plural(n_failed, 'attempt')} failed." if n_failed else ""
    more = f"and {', '.join(costs[1:])}" if costs[1:] else ""
    if not costs:
        return Answer("Spent", plural(session.n_items, "answer"), words=f"No costs were told.{failed} {words}".strip())
    told = f"For {plural(session.n_items, 'answer')}.{failed} {words}".strip()
    return Answer("Spent", costs[0], more, told)


def _budget_words(session: AdaptiveSession) -> Iterator[str]:
    """Say what is left of the budget, what was assumed, and what all items will have cost this model."""
    left = [money(amount, unit_words(unit)) for unit, amount in session.left.items()]
    if left:
        yield f"Left of the budget: {', '.join(left)}."
    for unit, amount in session.passed.items():
        yield f"The maximum was passed by {money(amount, unit_words(unit))}: the last item cost more than expected."
    for unit, (n_silent, amount) in session.assumed_costs.items():
        yield (
            f"{count(n_silent)} of {plural(session.n_items, 'answer')} told no cost: "
            f"{money(amount / n_silent, unit_words(unit))} was assumed for each."
        )
    for unit, (value, low, high) in session.whole_costs.items():
        if unit in (session.left or session.costs):
            name = unit_words(unit)
            yield f"The whole benchmark should cost {money(value, name)} ({money(low, '')} to {money(high, name)})."


def _cautions(session: AdaptiveSession, bank: Bank, scores: ScoreEstimates) -> Iterator[Caution]:
    flagged = scores.typicality.flagged_in_words(scores.model_ids, bank.n_compared_models)
    if flagged:
        yield Caution(flagged)
    if session.model_id in set(bank.responses.model_ids):
        yield Caution("This model helped to calibrate the bank: the interval is too narrow.")


def _step_blocks(session: AdaptiveSession) -> Iterator[Block]:
    if session.n_items == 0:
        yield Text("Nothing was answered yet: the estimate is what is expected of any new model.")
        return
    data = steps_data(session, session_steps(session))
    yield steps_chart(session, data)
    yield from (Text(words) for words in telling_words(data))
    yield telling_table(session, data)


def _past_blocks(bank: Bank, model: OneModel) -> Iterator[Block]:
    past = PastScores.of(bank)
    chart = standing_chart(past, model)
    if chart is not None:
        yield chart
    yield from scenario_blocks(past, model) or ()


def _expected_blocks(
    bank: Bank, items: IntArray, given: FloatArray, trials: FloatArray, scores: ScoreEstimates
) -> Iterator[Block]:
    typicality = float(scores.typicality.typicality[0])
    if not np.isnan(typicality):
        yield Text(typicality_words(typicality))
    chart = expectation_chart(GivenAnswers.of(bank, items, given, trials), KEY) if items.size else None
    if chart is not None:
        yield chart
        yield Text("Whether answers changed on the way: itembank check BANK JOURNAL.")


def _settings(session: AdaptiveSession, scores: ScoreEstimates) -> Iterator[Pair]:
    spec = session.pool.spec
    target = wanted_score(session)
    yield "Score wanted", f"{target}, {ESTIMANDS_IN_WORDS[scores.estimand]}"
    if target == CUSTOM:
        yield "Custom score", "A weighted mean of items, with weights of its own."
    yield "Items chosen by", CRITERIA.label(session.pool.criterion)
    rules = spec.stopping
    for name, width in rules.half_widths.items():
        yield "Stops when", f"the interval of {name} reaches {points(width)} or less to either side"
    if rules.decision is not None:
        against = rules.decision.model or f"{rules.decision.threshold:g}"
        yield (
            "Stops when",
            f"it is {100 * rules.decision.confidence:g} % sure whether {target} is above {visible(against)}",
        )
    if rules.ability_error is not None:
        yield "Stops when", f"the standard error of ability is {rules.ability_error:g} or less"
    if spec.budget.n_items is not None:
        yield "At most", plural(spec.budget.n_items, "item")
    for unit, amount in spec.budget.costs.items():
        yield "At most", money(amount, unit_words(unit))
    yield "Interval", MEANING[scores.interval_kind]
    yield "Items left", f"{count(session.n_unasked)} may still be asked"
