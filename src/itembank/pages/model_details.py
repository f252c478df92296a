"""What a page says of one model: its rank among past ones, how typical it is, its answers, what to run next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, shell_word, shown
from itembank.estimation.asked import selection_or_published
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.observations import Observations, found_items
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.pages.blocks import Block, Column, Facts, Pair, Section, Table, Text, bank_argument, heads
from itembank.pages.given_answers import answer_table
from itembank.pages.past_models import OneModel, PastScores, scenario_blocks, standing_chart
from itembank.pages.theme import percent, points
from itembank.readers.agreement import only_items
from itembank.responses.responses import ResponseMatrix


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimates with the answers that they were made from."""

    bank: Bank
    responses: ResponseMatrix  # Of the new models, to items of the bank
    observed: Observations  # The answers that count, in the bank's order
    estimates: ScoreEstimates
    past: PastScores
    results: str  # The arguments of a command that name the responses
    chosen: str  # The option that names the selection, with a space before it

    @classmethod
    def of(
        cls,
        bank: Bank,
        responses: ResponseMatrix,
        estimates: ScoreEstimates,
        selection: Selection | None = None,
        *,
        files: Sequence[str] = (),
        selection_file: str = "",
    ) -> Self:
        """Find the answers that the estimates were made from, as `estimate` does."""
        if tuple(responses.model_ids) != estimates.model_ids:
            raise DataError(
                f"responses must be those of the {estimates.n_models} models that were estimated, in their order, got "
                f"{shown(responses.model_ids)}. Give what estimate was given."
            )
        known = only_items(responses, bank.responses.items["item_id"])[0]
        option = f" --selection {shell_word(Path(selection_file))}" if selection_file else ""
        named = (" ".join(shell_word(Path(file)) for file in files) or "RESULTS", option)
        chosen = selection_or_published(bank, None if selection is None else selection.whole, known.item_ids)
        return cls(bank, known, found_items(bank, known, chosen), estimates, PastScores.of(bank), *named)

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
    beside = [made.past.model_ids[k] for k in past_rows(made, row).tolist()]
    answers = answer_table(made.bank, items, given, key, n_trials=own, beside=beside)
    is_known = not np.isnan(made.estimates.typicality.typicality[row])
    parts = (
        ("Compared with past models", past_blocks(made, row)),
        ("Scenario by scenario", scenario_blocks(made.past, made.model(row)) or ()),
        ("Typical or not" if is_known else "Where it differs from past models", typicality_blocks(made, row)),
        ("Its answers", (answers,) if items.size else ()),
        ("What to run next", next_blocks(made, [row])),
    )
    yield from (Section(title, tuple(blocks)) for title, blocks in parts if blocks)


def past_blocks(made: Estimated, row: int) -> tuple[Block, ...]:
    """Compare a model with all past ones, and with the nearest and the best of them by name."""
    chart, rows = standing_chart(made.past, made.model(row)), past_rows(made, row)
    if chart is None or not rows.size:
        return () if chart is None else (chart,)
    model, at = made.model(row), made.overall
    scores = made.past.value[rows, made.past.targets.index(model.target)]
    items, given = made.answered(row)
    theirs = made.bank.responses.of_items(items, models=rows)
    difference = float(model.value[at]) - scores
    rows_shown = {
        "model": [made.past.model_ids[k] for k in rows.tolist()],
        "score": scores,
        "difference": difference,
        "low": float(model.low[at]) - scores,
        "high": float(model.high[at]) - scores,
        "probability": made.estimates.probability_above(row, scores),
        "why": ["best", *["nearest"] * (rows.size - 1)],
        "for_new": np.sum(given > theirs, axis=1),
        "for_past": np.sum(given < theirs, axis=1),
    }
    columns = (
        Column("model", "Past model", "id"),
        Column("score", "Its score", "score", 1, "Known from its full run, or a nearly full one"),
        Column("difference", "Difference", "points", 1, "This model minus the past one, in points"),
        Column("low", "From", "points"),
        Column("high", "To", "points"),
        Column("probability", "Probably better", "percent", 0, "Probability that this model's score is higher"),
        *heads("for_new", "for_past", "why"),
    )
    note = (
        f"Differences are in points, with {100 * model.level:g} % intervals. Past models' scores are from (nearly) "
        "full runs, so all the uncertainty is in this model's estimate."
    )
    caption = "Compared with the best past model and the nearest ones"
    return chart, Table.of(caption, f"{model.key}-compared", rows_shown, columns, note=note)


def past_rows(made: Estimated, row: int) -> IntArray:
    """Rows of the past models that a new one is compared with by name: the best, then the three nearest by score."""
    model = made.model(row)
    if model.target not in made.past.targets or made.bank.published is not None:
        return np.zeros(0, dtype=np.int64)
    scores = made.past.value[:, made.past.targets.index(model.target)]
    is_itself = np.array(made.past.model_ids) == model.model_id
    known = np.flatnonzero(~np.isnan(scores) & ~is_itself)
    best = known[np.argsort(-scores[known], kind="stable")[:1]]
    near = known[np.argsort(np.abs(scores[known] - float(model.value[model.at])), kind="stable")]
    return np.concatenate([best, near[~np.isin(near, best)][:3]])


def typicality_blocks(made: Estimated, row: int) -> tuple[Block, ...]:
    """Say whether a model answers like past ones, and which command finds where it does not."""
    typicality = float(made.estimates.typicality.typicality[row])
    words = () if np.isnan(typicality) else (Text(typicality_words(typicality)),)
    if made.bank.published is not None:
        return words
    check = f"itembank check {bank_argument(made.bank)} {made.results}"
    return (*words, Facts((("Find where it differs", check),), are_commands=True))


def typicality_words(typicality: float) -> str:
    """Say in words how many past models answered as unusually."""
    if typicality == 0.0:
        return "Typicality 0: no past model answered as unusually as this one, given its score."
    return (
        f"Typicality {typicality:.2f}: {percent(typicality, 0)} of past models answered at least as unusually, given "
        "their scores. Below 0.10 a model is unlike past ones, and its interval may be too narrow."
    )


def next_blocks(made: Estimated, rows: Sequence[int]) -> tuple[Block, ...]:
    """Say which commands find how many items halve the interval of these models."""
    at, bank = made.overall, bank_argument(made.bank)
    widths = (made.estimates.high - made.estimates.low)[rows, at]
    widths = widths[~np.isnan(widths)]
    half = 0.5 * float(np.median(widths)) if widths.size else 0.0
    if (
        made.bank.headline is not None
        or not half > 0.0
        or not 0 < int(np.median(made.estimates.n_items[rows, at])) < made.bank.n_total
    ):
        return ()
    goal = f"{half / 2.0:.4f}"
    if made.bank.published is not None:
        run = int(np.median(made.estimates.n_items[rows, at]))
        more = sorted(one.n_items for one in made.bank.own_selections if one.n_items > run)
        command = f"itembank select {bank} -n {more[0]} -o selection.json" if more else ""
        return (Facts((("Narrow the interval", command),), are_commands=True),) if more else ()
    ways: list[Pair] = [("Find how many questions it takes", f"itembank plan {bank} --half-width {goal}")]
    if len(rows) == 1:
        model = shell_word(made.estimates.model_ids[rows[0]])
        command = f"itembank session start {bank} -o run.jsonl --model-id {model} --half-width {goal}"
        ways.append(("Ask one question at a time", command))
    which = "interval" if len(rows) == 1 else "median interval"
    return (Text(f"The {which} is ± {points(half)}. To halve it:"), Facts(tuple(ways), are_commands=True))
