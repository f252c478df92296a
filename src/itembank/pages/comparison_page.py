"""The page of a comparison: which of two models is better, or the order of many and who is tied."""

import warnings
from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.compared_models import ComparedModels
from itembank.comparison.comparisons import Comparison
from itembank.errors import DataWarning, shown
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, RUN
from itembank.estimation.observations import known_items
from itembank.pages.blocks import (
    Answer,
    Answers,
    Block,
    Caution,
    Column,
    Data,
    Pair,
    Section,
    Table,
    Text,
    bank_provenance,
)
from itembank.pages.comparison_charts import (
    PairFinding,
    models_table,
    order_chart,
    order_of,
    pair_number,
    probability_words,
    scenario_differences,
)
from itembank.pages.render import Page
from itembank.pages.theme import count, interval_words, level_words, percent, plural, points
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

MOST_IN_TABLE = 100
"""Models whose pairs a page lists, the best: 4,950 pairs."""


def comparison_page(
    comparison: Comparison,
    bank: Bank | None = None,
    responses: ResponseMatrix | None = None,
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
    bank, responses, selection : optional
        What it was made from: bank and responses tell which items decide between the first two models.
    by_scenario : Comparison, optional
        The same two models on every target, where `comparison` is of one.
    title, command : str
    """
    target = 0
    name = comparison.targets[target]
    order = order_of(comparison, target)
    first = PairFinding.of(comparison, pair_number(comparison, order[0], order[1]), target)
    all_targets = comparison if by_scenario is None else by_scenario
    is_pair = len(comparison.model_ids) == 2
    if is_pair:
        lead, sections = _pair_lead(comparison, first, f"the {name} score"), _pair_sections(all_targets, first)
    else:
        lead, sections = _ranking_lead(comparison, target), _ranking_sections(comparison, target)
    made_from: tuple[Pair, ...] = (("Bank", comparison.bank_id),)
    if bank is not None and responses is not None:
        pair = (first.better, first.worse)
        sections += (_deciding_section(deciding_items(bank, responses, selection, pair, name), pair, name),)
        made_from = bank_provenance(bank)
    spec = comparison.spec
    chosen = "all answered" if selection is None else f"{plural(selection.n_items, 'item')} by {selection.method}"
    meaning = f"{level_words(spec.level)}, {comparison.interval_kind}, of {ESTIMANDS_IN_WORDS[spec.estimand]}"
    how = (("Items compared on", chosen), ("Differences by", comparison.method), ("Intervals", meaning))
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
    return Page(
        title=title or (f"{first.better} against {first.worse}" if is_pair else f"{len(order)} models in order"),
        kind="Comparison" if is_pair else "Ranking",
        lead=(*lead, *found),
        sections=sections,
        provenance=(*made_from, *how),
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
    known = comparison.ranking.score[:, target]
    known = known[np.isfinite(known)]
    scores = interval_words(known.min(), known.max()) if known.size else percent(float("nan"))
    second = PairFinding.of(comparison, pair_number(comparison, order[0], order[1]), target)
    ahead = f"{points(second.difference)} ahead of {comparison.model_ids[order[1]]} ({second.interval_words})"
    apart = f"{count(n_apart)} of {count(comparison.n_pairs)}, at {level_words(comparison.spec.level)}"
    answers = (
        Answer("First", best, words=f"{ahead}; scores from {scores}"),
        Answer("Tied groups", count(int(groups.max())), words=f"{plural(n_first, 'model')} in the first group"),
        Answer(
            "Pairs that can be told apart",
            percent(n_apart / max(comparison.n_pairs, 1), 0),
            words=f"{apart}, adjusted for their number (Holm)",
        ),
    )
    return (Answers(answers),)


def _pair_sections(comparison: Comparison, pair: PairFinding) -> tuple[Section, ...]:
    if len(comparison.targets) < 3:  # the overall score, and an only scenario whose score it is
        return ()
    return (Section("Scenario by scenario", (scenario_differences(comparison, pair),)),)


def _ranking_sections(comparison: Comparison, target: int) -> tuple[Section, ...]:
    table = models_table(comparison, target)
    order = Section(
        "Order and tied groups",
        (order_chart(comparison, table), table),
        "Models of a group do not differ clearly from the best of that group. Models of neighbouring groups may be "
        "tied with each other, too.",
    )
    return (order, Section("Every pair", (_pairs_table(comparison, target),)))


def _pairs_table(comparison: Comparison, target: int) -> Table:
    """Return the pairs of the best models, the better one first."""
    order = order_of(comparison, target)[:MOST_IN_TABLE].tolist()
    numbers = [pair_number(comparison, one, other) for k, one in enumerate(order) for other in order[k + 1 :]]
    found = [PairFinding.of(comparison, number, target) for number in numbers]
    in_points = ("difference", "low", "high", "detectable")
    rows: dict[str, Any] = {name: [100.0 * float(getattr(one, name)) for one in found] for name in in_points}
    rows |= {name: [getattr(one, name) for one in found] for name in ("better", "worse", "probability", "n_items")}
    rows |= {"clear": [one.is_clear for one in found], "p_holm": comparison.tests.p_holm[numbers, target]}
    level = level_words(comparison.spec.level)
    columns = (
        Column("better", "Better", "id"),
        Column("worse", "Worse", "id"),
        Column("difference", "Difference (points)", "number"),
        Column("low", f"{level} from", "number"),
        Column("high", "to", "number"),
        Column("probability", "Probability", "number", 3, "That the first is better"),
        Column("p_holm", "p (Holm)", "number", 4, "Adjusted for the number of pairs"),
        Column("clear", "Told apart", "flag", has_menu=True),
        Column("detectable", "Detectable (points)", "number", 1, "True difference that these items would show"),
        Column("n_items", "Shared items", "count"),
    )
    n_models = len(comparison.model_ids)
    cut = f"Pairs of the {MOST_IN_TABLE} best of {n_models} models." if n_models > MOST_IN_TABLE else ""
    return Table.of("Differences of pairs", "pairs", rows, columns, note=cut)


def deciding_items(
    bank: Bank,
    responses: ResponseMatrix,
    selection: Selection | None,
    pair: tuple[str, str],
    target: str = OVERALL,
) -> Data:
    """Return the items that two models answered differently, those with the most say first.

    ``contribution_i = 100 t_s w_i d_i / sum w`` with ``d_i`` the first model's response less the second's, ``w_i`` the
    item's weight, the sum over the items of its scenario s that both answered, and ``t_s`` the weight of the scenario
    in the target: over all items they add up to the raw difference, in points.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # given when the models were compared
        known = known_items(bank, responses, selection, ignore_unknown=True)
        both = known.take(models=known.model_indices(pair))
        compared = ComparedModels.create(bank, both, selection, target)
    observations, scenarios = compared.observations, compared.scenarios()
    difference = observations.responses[0] - observations.responses[1]
    weights = np.where(np.isnan(difference), 0.0, observations.weights)
    totals = np.bincount(scenarios, weights=weights, minlength=compared.bank.targets.n_scenarios)[scenarios]
    share = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0.0)
    contribution = 100.0 * compared.target_weights()[0][scenarios] * share * np.nan_to_num(difference)
    table = bank.items[compared.observations.positions.tolist()]
    easy = table["mean_response"].to_numpy()
    # of items with equal say, hard ones that the first model got right and easy ones that it got wrong come first
    surprise = np.where(contribution > 0.0, easy, -easy)
    order = np.lexsort((surprise, -np.abs(np.round(contribution, 9))))
    order = order[np.abs(np.nan_to_num(contribution[order])) > 0.0]
    answers = compared.observations.responses[:, order]
    columns = {
        "item_id": table["item_id"].to_list(),
        "scenario": table["scenario"].to_list(),
        "past": easy,
        "contribution": contribution,
        "speaks_for": [pair[0] if value > 0.0 else pair[1] for value in contribution],
    }
    chosen = {name: [values[k] for k in order.tolist()] for name, values in columns.items()}
    return Data("deciding", {**chosen, "first": answers[0], "second": answers[1]})


def _deciding_section(items: Data, pair: tuple[str, str], target: str) -> Section:
    """Return the section on the items that decide between two models."""
    total = float(np.sum(items.columns["contribution"]))
    better, worse = (sum(sign * value > 0.0 for value in items.columns["contribution"]) for sign in (1.0, -1.0))
    lead = (
        f"{pair[0]} did better than {pair[1]} on {better} items and worse on {worse}. "
        f"Together they make a raw difference of {points(0.01 * total, is_signed=True)} on the {target} score; "
        "the estimate above also uses what past models tell of these items."
    )
    if not len(items):
        return Section("Items that decide", (), lead)
    columns = (
        Column("item_id", "Item", "id"),
        Column("scenario", "Scenario", has_menu=True),
        Column("speaks_for", "Speaks for", has_menu=True),
        Column("contribution", "Points", "number", 2, f"Positive for {pair[0]}"),
        Column("first", pair[0], "number", 2, "Its response, from 0 to 1"),
        Column("second", pair[1], "number", 2, "Its response, from 0 to 1"),
        Column("past", "Past models right", "percent", 0),
    )
    note = "Items with the most say come first; of equal ones, those that surprise most."
    table = Table("Items that the two answered differently", items, columns, note=note)
    return Section("Items that decide", (table,), lead)
