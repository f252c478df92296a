"""An adaptive session answer by answer: the estimate after each, and what each of them changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray
from itembank.pages.blocks import Chart, Column, Data, Table
from itembank.pages.charts import Spec, layer, layers, tips
from itembank.pages.common import unit_words
from itembank.pages.interval_charts import PRECISE, share
from itembank.pages.theme import interval_words, percent, points
from itembank.sessions.events import Told
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import CUSTOM

MOST_STEPS = 200
"""Answers after which the score is estimated again; of a longer session, evenly many."""
NOT_KNOWN = float("nan")


@dataclass(frozen=True, slots=True)
class Step:
    """Where a session stood after an answer."""

    number: int  # Answers told so far; 0 before the first
    told: Told | None  # The last of them
    expected: float  # Of this answer, before it was told; NaN where the state before it was not estimated
    value: float  # Of the score that the session is about
    low: float
    high: float
    costs: Mapping[str, float]  # So far

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return 0.5 * (self.high - self.low)


def wanted_score(session: AdaptiveSession) -> str:
    """Name of the score that a session is about."""
    target = session.pool.spec.target
    return target if isinstance(target, str) else CUSTOM


def session_steps(session: AdaptiveSession) -> tuple[Step, ...]:
    """Estimate the score again after each answer of a session, as it stood then; first before any answer."""
    places = [place for place, event in enumerate(session.history) if isinstance(event, Told)]
    shown = np.unique(np.linspace(0, len(places), min(len(places), MOST_STEPS) + 1).round().astype(np.int64))
    found: list[Step] = []
    theta: FloatArray = np.zeros(0)
    for number in shown.tolist():
        events = session.history[: places[number - 1] + 1] if number else ()
        then = AdaptiveSession(session.pool, model_id=session.model_id, events=events)
        made = then.estimate()
        at = made.scores.targets.index(wanted_score(session))
        value, low, high = (float(one[0, at]) for one in (made.scores.value, made.scores.low, made.scores.high))
        step = Step(number, None, NOT_KNOWN, value, low, high, dict(then.costs))
        if events and isinstance(events[-1], Told):
            is_next = found[-1].number == number - 1
            expected = _expected(session, events[-1].item_id, theta) if is_next else NOT_KNOWN
            step = replace(step, told=events[-1], expected=expected)
        found.append(step)
        theta = made.theta
    return tuple(found)


def _expected(session: AdaptiveSession, item_id: str, theta: FloatArray) -> float:
    """Find the expected answer to an item at an ability (n_dims,)."""
    place = np.array([session.pool.positions[item_id]])
    return float(probability(session.pool.basis.parameters.take(place), theta[None, :])[0, 0])


def steps_data(session: AdaptiveSession, steps: tuple[Step, ...]) -> Data:
    """Return the steps as a table's columns."""
    told = [step.told for step in steps]
    ids = ["" if one is None else one.item_id for one in told]
    scenario = dict(session.pool.item_table.select("item_id", "scenario").iter_rows())
    before = [None, *steps[:-1]]
    is_next = [last is not None and last.number == step.number - 1 for last, step in zip(before, steps, strict=True)]
    moves = [
        (step.value - last.value, step.half_width - last.half_width)
        if last is not None and follows
        else (NOT_KNOWN,) * 2
        for last, step, follows in zip(before, steps, is_next, strict=True)
    ]
    unit = _shown_unit(session)
    return Data(
        "steps",
        {
            "number": [step.number for step in steps],
            "item": ids,
            "scenario": [scenario.get(one, "") for one in ids],
            "expected": [step.expected for step in steps],
            "given": [NOT_KNOWN if one is None else one.response for one in told],
            "estimate": [step.value for step in steps],
            "low": [step.low for step in steps],
            "high": [step.high for step in steps],
            "half_width": [step.half_width for step in steps],
            "moved": [one[0] for one in moves],
            "narrowed": [-one[1] for one in moves],
            "cost": [NOT_KNOWN if unit is None else step.costs.get(unit, 0.0) for step in steps],
        },
    )


def _shown_unit(session: AdaptiveSession) -> str | None:
    """Which of the costs that were told stands in the table: money, or else the first."""
    return next((unit for unit in ("cost_usd", *session.costs) if unit in session.costs), None)


def steps_chart(session: AdaptiveSession, data: Data) -> Chart:
    """Draw the estimate with its interval after each answer."""
    columns = data.columns
    told = tips(
        number=("Answers", ","),
        item="Item",
        given=("Answer", ".0%"),
        estimate=("Estimate", PRECISE),
        low=("From", PRECISE),
        high=("To", PRECISE),
    )
    x = {"field": "number", "type": "quantitative", "title": "Answers so far", "axis": {"tickCount": 8}}
    y = share("estimate", f"Score: {wanted_score(session)}", scale={"zero": False})
    band = layer(
        {"type": "area", "color": "@main", "opacity": 0.18},
        data.name,
        x=x,
        y={**y, "field": "low"},
        y2={"field": "high"},
    )
    line = layer({"type": "line", "color": "@main", "strokeWidth": 2.2}, data.name, x=x, y=y)
    dots = layer({"type": "point", "filled": True, "color": "@main", "size": 34}, data.name, x=x, y=y, tooltip=told)
    goals = _goal_lines(session)
    last = len(data) - 1
    title = (
        f"After {columns['number'][last]:,} answers the interval reaches {points(columns['half_width'][last])} to "
        f"either side; before the first it was {points(columns['half_width'][0])}"
    )
    marked = sorted({0, last // 4, last // 2, 3 * last // 4, last})
    said = "; ".join(
        f"after {columns['number'][k]:,}: {percent(columns['estimate'][k])}, "
        f"{interval_words(columns['low'][k], columns['high'][k])}"
        for k in marked
    )
    level = f"Band: {100.0 * session.pool.spec.stopping.level:g} % interval after each answer."
    n_told = sum(isinstance(event, Told) for event in session.history)
    drawn = f" Of {n_told:,} answers, {last:,} are shown, evenly chosen." if n_told > last else ""
    rules = " Dashed: the threshold that decides." if goals else ""
    spec = layers(band, [one for _, one in goals], line, dots, height=320)
    return Chart(title, spec, (data, *(one for one, _ in goals)), f"{title}. {said}.", note=f"{level}{rules}{drawn}")


def _goal_lines(session: AdaptiveSession) -> list[tuple[Data, Spec]]:
    """Draw a dashed line at the threshold of a decision about the score that is drawn; none without one."""
    decision = session.pool.spec.stopping.decision
    if decision is None or decision.target != wanted_score(session):
        return []
    data = Data("threshold", {"estimate": [float(session.pool.threshold)]})
    mark = {"type": "rule", "color": "@other", "strokeDash": [5, 4], "strokeWidth": 1.5}
    return [(data, layer(mark, data.name, y=share("estimate", scale={"zero": False})))]


def telling_table(session: AdaptiveSession, data: Data) -> Table:
    """List the answers, those first that moved the estimate most."""
    moved = np.abs(np.nan_to_num(np.asarray(data.columns["moved"], dtype=np.float64)))
    order = [k for k in np.argsort(-moved, kind="stable").tolist() if data.columns["item"][k]]
    chosen = Data("telling", {name: [values[k] for k in order] for name, values in data.columns.items()})
    unit = _shown_unit(session)
    digits = 0 if unit is None or session.costs[unit] >= 100.0 else 3
    return Table(
        "Answers, those first that moved the estimate most",
        chosen,
        (
            Column("number", "Answer", "count"),
            Column("item", "Item", "id"),
            Column("scenario", "Scenario", has_menu=True),
            Column("expected", "Expected", "percent", 0, "What the answers before let expect"),
            Column("given", "Given", "percent", 0, "100 % is right, 0 % wrong"),
            Column("moved", "Moved", "points", 2, "Change of the estimate, in points"),
            Column("narrowed", "Narrowed", "points", 2, "By how much the interval got narrower, to either side"),
            Column("estimate", "Estimate after", "percent"),
            Column("half_width", "Half-width", "percent", 2),
            *(() if unit is None else (Column("cost", f"{unit_words(unit)} so far", "number", digits),)),
        ),
        n_shown=15,
    )


def telling_words(data: Data) -> Iterator[str]:
    """Say which answers told most."""
    columns = data.columns
    moved = np.asarray(columns["moved"], dtype=np.float64)
    known = np.flatnonzero(~np.isnan(moved))
    if known.size == 0:
        return
    far = int(known[np.argmax(np.abs(moved[known]))])
    yield (
        f"The answer that moved the estimate most was number {columns['number'][far]:,}, {columns['item'][far]}: "
        f"expected {percent(columns['expected'][far], 0)}, given {percent(columns['given'][far], 0)}, "
        f"{points(float(moved[far]), is_signed=True)}."
    )
    narrowed = np.asarray(columns["narrowed"], dtype=np.float64)
    best = int(known[np.argmax(narrowed[known])])
    yield (
        f"The one that narrowed the interval most was number {columns['number'][best]:,}, {columns['item'][best]}: "
        f"by {points(float(narrowed[best]))} to either side."
    )
