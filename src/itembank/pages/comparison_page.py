"""The page of a comparison: which of two models is better, or the order of many and who is tied."""

from collections.abc import Sequence

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.comparisons import Comparison
from itembank.errors import shown
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, RUN
from itembank.pages.blocks import Answer, Answers, Block, Caution, Column, Data, Section, Table, Text
from itembank.pages.common import Pair, bank_provenance, plural
from itembank.pages.comparison_charts import (
    lead_words,
    models_table,
    order_chart,
    order_of,
    scenario_differences,
    score_words,
)
from itembank.pages.comparison_items import deciding_items, items_section
from itembank.pages.comparison_matrix import matrix_chart, profile_chart
from itembank.pages.comparison_pairs import PairFinding, pair_number, probability_words
from itembank.pages.render import Page
from itembank.pages.theme import count, level_words, percent, points
from itembank.responses.responses import ResponseMatrix

MOST_IN_TABLE = 100
"""Models whose pairs a page lists, the best: 4,950 pairs."""


def comparison_page(
    comparison: Comparison,
    bank: Bank,
    responses: ResponseMatrix,
    *,
    selection: Selection | None = None,
    by_scenario: Comparison | None = None,
    title: str = "",
    command: str = "",
) -> Page:
    """Return the page of a comparison of two models, or of a ranking of many.

    Parameters
    ----------
    comparison : Comparison
        The page answers for its first target.
    bank, responses, selection
        What it was made from: they tell which items decide between the first two models.
    by_scenario : Comparison, optional
        The same models on every target, where `comparison` is of one.
    title, command : str
    """
    target = 0
    name = comparison.targets[target]
    order = order_of(comparison, target)
    first = PairFinding.of(comparison, pair_number(comparison, order[0], order[1]), target)
    of_what = f"the {name} score"
    all_targets = comparison if by_scenario is None else by_scenario
    items = deciding_items(bank, responses, selection, (first.better, first.worse), name)
    is_pair = len(comparison.model_ids) == 2
    middle = _pair_sections(all_targets, first) if is_pair else _ranking_sections(comparison, all_targets, target)
    return Page(
        title=title or (f"{first.better} against {first.worse}" if is_pair else f"{len(order)} models in order"),
        kind="Comparison" if is_pair else "Ranking",
        lead=(
            *(_pair_lead(comparison, first, of_what) if is_pair else _ranking_lead(comparison, target)),
            *_cautions(comparison),
        ),
        sections=(*middle, items_section(items, (first.better, first.worse), name)),
        provenance=(*bank_provenance(bank), *_made_by(comparison, selection)),
        command=command,
    )


def _pair_lead(comparison: Comparison, pair: PairFinding, of_what: str) -> tuple[Block, ...]:
    value = points(pair.difference, is_signed=True)
    citation = (
        f"{pair.better} less {pair.worse} on {of_what}: {value} ({pair.interval_words}), probability better "
        f"{probability_words(pair.probability)}, {pair.n_items} shared items, itembank, bank {comparison.bank_id}, "
        f"method {comparison.method}"
    )
    answer = Answer(
        f"{pair.better} less {pair.worse}, {of_what}",
        value,
        pair.interval_words,
        f"Probability that {pair.better} is better: {probability_words(pair.probability)}. From "
        f"{plural(pair.n_items, 'item')} that both answered.",
        citation,
    )
    return (Text(pair.sentence(of_what)), answer, Text(pair.detectable_words))


def _ranking_lead(comparison: Comparison, target: int) -> tuple[Block, ...]:
    order = order_of(comparison, target)
    best = comparison.model_ids[order[0]]
    groups = comparison.ranking.group[:, target]
    n_apart = int(np.sum(comparison.tests.p_holm[:, target] < 1.0 - comparison.spec.level))
    n_first = int(np.sum(groups == 1))
    level = level_words(comparison.spec.level)
    answers = Answers(
        (
            Answer("First", best, words=f"scores from {score_words(comparison, target)}"),
            Answer("Tied groups", count(int(groups.max())), words=f"{plural(n_first, 'model')} in the first group"),
            Answer(
                "Pairs that can be told apart",
                percent(n_apart / max(comparison.n_pairs, 1), 0),
                words=f"{count(n_apart)} of {count(comparison.n_pairs)}, at {level}, adjusted for their number (Holm)",
            ),
        )
    )
    return (Text(lead_words(comparison, target)), answers)


def _cautions(comparison: Comparison) -> tuple[Block, ...]:
    found: list[Block] = []
    if comparison.flagged_models:
        found.append(
            Caution(
                f"{shown(comparison.flagged_models)} answered unlike past models: take intervals of differences with "
                "such a model with care."
            )
        )
    if comparison.interval_kind == "classical":
        found.append(
            Caution(
                "Past models could not tell how large errors are here: the intervals take the items as a random sample."
            )
        )
    if comparison.spec.estimand != RUN:
        found.append(Text(f"Differences are of {ESTIMANDS_IN_WORDS[comparison.spec.estimand]}."))
    found += [Caution(f"{text[0].upper()}{text[1:]}.") for text in comparison.notes_on_items()]
    return tuple(found)


def _pair_sections(comparison: Comparison, pair: PairFinding) -> tuple[Section, ...]:
    if len(comparison.targets) < 3:  # the overall score, and an only scenario whose score it is
        return ()
    return (Section("Scenario by scenario", (scenario_differences(comparison, pair),)),)


def _ranking_sections(comparison: Comparison, by_scenario: Comparison, target: int) -> tuple[Section, ...]:
    table = models_table(comparison, target)
    order = Section(
        "Order and tied groups",
        (order_chart(comparison, table), table),
        "Models of a group do not differ clearly from the best of that group. Models of neighbouring groups may be "
        "tied with each other, too.",
    )
    pairs = Section("Every pair", (matrix_chart(comparison, target), _pairs_table(comparison, target)))
    place = by_scenario.targets.index(comparison.targets[target])
    if len(by_scenario.targets) < 3 or comparison.targets[target] != comparison.last:
        return (order, pairs)
    return (order, pairs, Section("Scenario by scenario", (profile_chart(by_scenario, place),)))


def _pairs_table(comparison: Comparison, target: int) -> Table:
    """Return the pairs of the best models, the better one first."""
    order = order_of(comparison, target)[:MOST_IN_TABLE].tolist()
    numbers = [pair_number(comparison, one, other) for k, one in enumerate(order) for other in order[k + 1 :]]
    found = [PairFinding.of(comparison, number, target) for number in numbers]
    data = Data(
        "pairs",
        {
            "better": [one.better for one in found],
            "worse": [one.worse for one in found],
            "difference": _in_points(found, "difference"),
            "low": _in_points(found, "low"),
            "high": _in_points(found, "high"),
            "probability": [one.probability for one in found],
            "p_holm": comparison.tests.p_holm[numbers, target],
            "clear": [one.is_clear for one in found],
            "detectable": _in_points(found, "detectable"),
            "n_items": [one.n_items for one in found],
        },
    )
    level = level_words(comparison.spec.level)
    columns = (
        Column("better", "Better", "id"),
        Column("worse", "Worse", "id"),
        Column("difference", "Difference (points)", "number"),
        Column("low", f"{level} from", "number"),
        Column("high", "to", "number"),
        Column("probability", "Probability", "number", digits=3, explanation="That the first is better"),
        Column("p_holm", "p (Holm)", "number", digits=4, explanation="Adjusted for the number of pairs"),
        Column("clear", "Told apart", "flag", has_menu=True),
        Column(
            "detectable", "Detectable (points)", "number", explanation="True difference that these items would show"
        ),
        Column("n_items", "Shared items", "count"),
    )
    n_models = len(comparison.model_ids)
    cut = f"Pairs of the {MOST_IN_TABLE} best of {n_models} models." if n_models > MOST_IN_TABLE else ""
    return Table("Differences of pairs", data, columns, note=cut)


def _in_points(found: Sequence[PairFinding], name: str) -> list[float]:
    return [100.0 * float(getattr(one, name)) for one in found]


def _made_by(comparison: Comparison, selection: Selection | None) -> tuple[Pair, ...]:
    spec = comparison.spec
    chosen = "all answered" if selection is None else f"{plural(selection.n_items, 'item')} by {selection.method}"
    return (
        ("Items compared on", chosen),
        ("Differences by", comparison.method),
        ("Intervals", f"{level_words(spec.level)}, {comparison.interval_kind}, of {ESTIMANDS_IN_WORDS[spec.estimand]}"),
    )
