"""What a page says of one model: where it stands, where it is typical, what it answered, what to run next."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, shown
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.observations import Observations, found_items
from itembank.estimation.past_errors import selection_or_published
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Block, Column, Facts, Section, Table, Text
from itembank.pages.given_answers import answer_table
from itembank.pages.past_models import OneModel, PastScores, scenario_blocks, standing_chart
from itembank.pages.theme import points
from itembank.readers.agreement import only_items
from itembank.responses.responses import ResponseMatrix

N_NEAREST = 3
"""Past models of about the same score that a model is compared with, beside the best."""


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimates with the answers that they were made from."""

    bank: Bank
    responses: ResponseMatrix  # Of the new models, to items of the bank
    observed: Observations  # The answers that count, in the bank's order
    estimates: ScoreEstimates
    past: PastScores

    @classmethod
    def of(
        cls, bank: Bank, responses: ResponseMatrix, estimates: ScoreEstimates, selection: Selection | None = None
    ) -> Self:
        """Find the answers that the estimates were made from, as `estimate` does."""
        if tuple(responses.model_ids) != estimates.model_ids:
            raise DataError(
                f"responses must be those of the {estimates.n_models} models that were estimated, in their order, got "
                f"{shown(responses.model_ids)}. Give what estimate was given."
            )
        known = only_items(responses, bank.responses.items["item_id"])[0]
        chosen = selection_or_published(bank, None if selection is None else selection.whole, known.item_ids)
        return cls(bank, known, found_items(bank, known, chosen), estimates, PastScores.of(bank))

    @property
    def n_models(self) -> int:
        """Number of models."""
        return self.estimates.n_models

    @property
    def overall(self) -> int:
        """Where the overall score, or a headline score in its place, stands among the targets."""
        return self.estimates.targets.index(self.estimates.main_target)

    def model(self, row: int, target: str = "") -> OneModel:
        """Return the estimates of one model, for a page about this score; by default the overall or headline score."""
        return OneModel.of(self.estimates, row, f"m{row + 1}", target or self.estimates.main_target)

    def answered(self, row: int) -> tuple[IntArray, FloatArray]:
        """Positions in the bank of what one model answered, and the responses, each (n,)."""
        responses = self.observed.responses[row]
        is_known = ~np.isnan(responses)
        return self.observed.positions[is_known], responses[is_known]


def model_sections(made: Estimated, row: int) -> Iterator[Section]:
    """Yield the sections of one model."""
    key, (items, given), trials = made.model(row).key, made.answered(row), made.observed.n_trials
    own = None if trials is None else trials[row][~np.isnan(made.observed.responses[row])]
    parts = (
        ("Beside past models", past_blocks(made, row)),
        ("Scenario by scenario", scenario_blocks(made.past, made.model(row)) or ()),
        ("Typical or not", typicality_blocks(made, row)),
        ("Its answers", (answer_table(made.bank, items, given, key, n_trials=own),) if items.size else ()),
        ("What to run next", next_blocks(made, [row])),
    )
    yield from (Section(title, tuple(blocks)) for title, blocks in parts if blocks)


def past_blocks(made: Estimated, row: int) -> tuple[Block, ...]:
    """Compare a model with all past ones, and with the nearest and the best of them by name."""
    model = made.model(row)
    chart = standing_chart(made.past, model)
    if chart is None:
        return ()
    scores = made.past.value[:, made.past.targets.index(model.target)]
    is_itself = np.array(made.past.model_ids) == model.model_id
    rows = compared_rows(np.where(is_itself, np.nan, scores), float(model.value[model.at]))
    if rows.size == 0:
        return (chart,)
    return (chart, _past_table(made, row, rows))


def compared_rows(scores: FloatArray, score: float) -> IntArray:
    """Rows of the past models that a new one is compared with: the best, then the nearest by score."""
    known = np.flatnonzero(~np.isnan(scores))
    best = known[np.argsort(-scores[known], kind="stable")[:1]]
    near = known[np.argsort(np.abs(scores[known] - score), kind="stable")]
    return np.concatenate([best, near[~np.isin(near, best)][:N_NEAREST]])


def _past_table(made: Estimated, row: int, rows: IntArray) -> Table:
    """List differences to past models, whose scores are known: all the doubt is the new model's."""
    model, at = made.model(row), made.overall
    scores = made.past.value[rows, made.past.targets.index(model.target)]
    error = float(made.estimates.standard_error[row, at])
    items, given = made.answered(row)
    theirs = made.bank.responses.of_items(items, models=rows)
    difference = float(model.value[at]) - scores
    is_better = ndtr(difference / error) if error > 0.0 else (difference > 0.0).astype(np.float64)
    rows_shown = {
        "model": [made.past.model_ids[k] for k in rows.tolist()],
        "why": ["best", *["nearest"] * (rows.size - 1)],
        "score": scores,
        "difference": difference,
        "low": float(model.low[at]) - scores,
        "high": float(model.high[at]) - scores,
        "probability": is_better,
        "for_new": np.sum(given > theirs, axis=1),
        "for_past": np.sum(given < theirs, axis=1),
    }
    columns = (
        Column("model", "Past model", "id"),
        Column("why", "Chosen as"),
        Column("score", "Its score", "percent", 1, "Known from its full run, or a nearly full one"),
        Column("difference", "Difference", "points", 1, "This model less the past one, in points"),
        Column("low", "From", "points"),
        Column("high", "To", "points"),
        Column("probability", "Probably better", "percent", 0, "Probability that this model's score is higher"),
        Column("for_new", "Items for this", "count", explanation="Items that this model answered better"),
        Column("for_past", "Items for the past", "count", explanation="Items that the past model answered better"),
    )
    note = (
        f"Differences are in points, with {100 * model.level:g} % intervals. Scores of past models are known from full "
        "runs, or nearly full ones, so the doubt is in this model's estimate."
    )
    caption = "Beside the best past model and the nearest ones"
    return Table.of(caption, f"{model.key}-compared", rows_shown, columns, note=note)


def typicality_blocks(made: Estimated, row: int) -> tuple[Block, ...]:
    """Say whether a model answers like past ones, and what says where it does not."""
    typicality = float(made.estimates.typicality.typicality[row])
    words = () if np.isnan(typicality) else (Text(typicality_words(typicality)),)
    return (*words, Text("Whether it answers like past models, and where not: itembank check BANK RESULTS."))


def typicality_words(typicality: float) -> str:
    """Say in words how many past models answered as unusually."""
    if typicality == 0.0:
        return "No past model answered as unusually as this one, given its score."
    return (
        f"Of 100 past models, {100.0 * typicality:.0f} answered as unusually as this one or more, given their scores "
        f"(typicality {typicality:.2f})."
    )


def next_blocks(made: Estimated, rows: Sequence[int]) -> tuple[Block, ...]:
    """Say which commands find how many items halve the interval."""
    at = made.overall
    widths = (made.estimates.high - made.estimates.low)[rows, at]
    widths = widths[~np.isnan(widths)]
    half = 0.5 * float(np.median(widths)) if widths.size else 0.0
    if not half > 0.0 or not 0 < int(np.median(made.estimates.n_items[rows, at])) < made.bank.n_total:
        return ()
    goal = f"{half / 2.0:.4f}"
    if made.bank.headline is not None:  # all items together may leave such a score open
        command = f"itembank plan BANK --half-width {goal} --target {shlex.quote(made.bank.targets.last)}"
        return (Facts((("How many items halve the interval, tried on past models", command),)),)
    ways = [("Ask one at a time", f"itembank session start BANK -o run.jsonl --model-id MODEL --half-width {goal}")]
    if made.bank.published is None:
        ways = [("How many items, tried on past models", f"itembank plan BANK --half-width {goal}"), *ways]
    whose = "The interval reaches" if len(rows) == 1 else "The middle interval reaches"
    return (Text(f"{whose} {points(half)} to either side. To halve that:"), Facts(tuple(ways)))
