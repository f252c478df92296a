"""The page of a comparison: which of two models is better, or the order of many and which are tied."""

from typing import Any

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.comparison.compared_models import ComparedModels
from itembank.comparison.comparison_spec import PAIRED
from itembank.comparison.comparisons import Comparison
from itembank.errors import DataWarning, shown, unsaid
from itembank.estimation.asked import known_items
from itembank.estimation.estimate import estimate
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, METHODS
from itembank.numerics.arrays import FloatArray
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
    bank_title,
    heads,
    noted,
)
from itembank.pages.comparison_charts import (
    PairFinding,
    models_table,
    order_chart,
    order_of,
    pair_number,
    probability_words,
    scenario_differences,
    score_chart,
)
from itembank.pages.given_answers import item_entries
from itembank.pages.render import Page
from itembank.pages.theme import UNKNOWN, count, interval_words, level_words, percent, points, shortened
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.tables import plural

MOST_LETTERS = 60
"""Of a name in an answer's box; the sentence above has all of it."""


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
        The page answers for the overall score, or the first target of a comparison without it.
    bank, responses, selection : optional
        What it was made from: bank and responses tell which items decide between the first two models.
    by_scenario : Comparison, optional
        The same two models on every target, where `comparison` is of one.
    title, command : str
    """
    target = comparison.targets.index(comparison.last) if comparison.last in comparison.targets else 0
    name = comparison.targets[target]
    order = order_of(comparison, target)
    first = PairFinding.of(comparison, pair_number(comparison, order[0], order[1]), target)
    all_targets = comparison if by_scenario is None else by_scenario
    is_pair = len(comparison.model_ids) == 2
    if is_pair:
        lead = _pair_lead(comparison, first, f"the {name} score")
        # two targets are the overall score, and an only scenario whose score it is
        differences = (scenario_differences(all_targets, first),) if len(all_targets.targets) > 2 else ()
        sections = tuple(Section("Scenario by scenario", (one,)) for one in differences)
    else:
        intervals = None
        if bank is not None and responses is not None:
            intervals = _intervals(comparison, target, bank, responses, selection)
        lead, sections = _ranking_lead(comparison, target), _ranking_sections(comparison, target, intervals)
    made_from: tuple[Pair, ...] = (("Bank", comparison.bank_id),) if comparison.bank_id else ()
    if bank is not None and responses is not None:
        pair = (first.better, first.worse)
        items = deciding_items(bank, responses, selection, pair, name)
        sections += (_deciding_section(bank, items, pair, name, uses_past=comparison.method != PAIRED),)
        made_from = bank_provenance(bank)
    on = "" if bank is None else f" on {bank_title(bank)}"
    spec = comparison.spec
    chosen = "all answered" if selection is None else f"{plural(selection.n_items, 'question')} by {selection.method}"
    meaning = f"{level_words(spec.level)}, {comparison.interval_kind}, of {ESTIMANDS_IN_WORDS[comparison.estimand]}"
    how = (("Questions compared on", chosen), ("Differences by", comparison.method), ("Intervals", meaning))
    found: list[Block] = []
    if comparison.flagged_models:
        found.append(
            Caution(
                f"{shown(comparison.flagged_models)} answered unlike past models: intervals of differences with such a "
                "model may be too narrow."
            )
        )
    found.append(Text(f"Differences are of {ESTIMANDS_IN_WORDS[comparison.estimand]}."))
    found += [noted(one, is_clause=True) for one in comparison.notes]
    return Page(
        title=title or f"{f'{first.better} against {first.worse}' if is_pair else f'{len(order)} models ranked'}{on}",
        kind="Comparison" if is_pair else "Ranking",
        lead=(*lead, *found),
        sections=sections,
        provenance=(*made_from, *how),
        command=command,
    )


def _pair_lead(comparison: Comparison, pair: PairFinding, of_what: str) -> tuple[Block, ...]:
    value = points(pair.difference, is_signed=True)
    citation = (
        f"{pair.better} minus {pair.worse} on {of_what}: {value} ({pair.interval_words}), probability better "
        f"{probability_words(pair.probability)}, {pair.n_items} shared questions, itembank, "
        f"{f'bank {comparison.bank_id}, ' if comparison.bank_id else ''}method {comparison.method}"
    )
    chance = f"Probability that {pair.better} is better: {probability_words(pair.probability)}. "
    answer = Answer(
        f"{pair.better} minus {pair.worse}, {of_what}",
        value,
        pair.interval_words,
        f"{'' if pair.is_exact else chance}From {plural(pair.n_items, 'question')} that both answered.",
        citation,
    )
    return (Text(pair.sentence(of_what)), answer, Text(pair.detectable_words))


def _ranking_lead(comparison: Comparison, target: int) -> tuple[Block, ...]:
    order = order_of(comparison, target)
    best = comparison.model_ids[order[0]]
    groups = comparison.ranking.group[:, target]
    n_apart = int(np.sum(comparison.is_clear[:, target]))
    n_first = int(np.sum(groups == 1))
    known = comparison.ranking.score[:, target]
    known = known[np.isfinite(known)]
    scores = interval_words(known.min(), known.max()) if known.size else UNKNOWN
    second = PairFinding.of(comparison, pair_number(comparison, order[0], order[1]), target)
    next_one = shortened(comparison.model_ids[order[1]], MOST_LETTERS)
    ahead = f"{points(second.difference)} ahead of {next_one} ({second.interval_words})"
    apart = f"{count(n_apart)} of {count(comparison.n_pairs)}, at {level_words(comparison.spec.level)}"
    first = Answer("First", shortened(best, MOST_LETTERS), words=f"{ahead}; scores from {scores}")
    lead = f"{best} is first of {plural(order.size, 'model')}"
    if comparison.is_exact:
        return (
            Text(f"{lead} in this run."),
            Answers((first,)),
            Text("Places are of this run, on exactly these questions: others may turn them."),
        )
    answers = (
        first,
        Answer("Tied groups", count(int(groups.max())), words=f"{plural(n_first, 'model')} in the first"),
        Answer(
            "Pairs that differ clearly",
            percent(n_apart / max(comparison.n_pairs, 1), 0),
            words=f"{apart}, adjusted for their number (Holm)",
        ),
    )
    tied = n_first - 1
    beside = f"with {plural(tied, 'other')}" if tied else "alone"
    return (Text(f"{lead}, {beside} in the first tied group."), Answers(answers))


def _intervals(
    comparison: Comparison, target: int, bank: Bank, responses: ResponseMatrix, selection: Selection | None
) -> FloatArray | None:
    """Return the intervals of the scores that a ranking goes by, (n_models, 2); None if they are not estimates."""
    spec, name = comparison.spec, comparison.targets[target]
    if comparison.method not in METHODS.names() or spec.estimand is None or spec.estimand == "questions":
        return None
    with unsaid(DataWarning):  # given when the models were compared
        found = estimate(
            bank,
            responses.take(models=responses.model_indices(comparison.model_ids)),
            selection=selection,
            method=comparison.method,
            level=spec.level,
            estimand=spec.estimand,
            ignore_unknown=True,
        )
    at = found.targets.index(name) if name in found.targets else 0
    is_same = np.allclose(found.value[:, at], comparison.ranking.score[:, target], atol=1e-9, equal_nan=True)
    return np.column_stack([found.low[:, at], found.high[:, at]]) if is_same else None


def _ranking_sections(comparison: Comparison, target: int, intervals: FloatArray | None) -> tuple[Section, ...]:
    table = models_table(comparison, target, intervals)
    scores = () if intervals is None else (score_chart(comparison, table),)
    order = Section(
        "Order and tied groups",
        (*scores, table, order_chart(comparison, table)),
        "As many models are clearly better than each model of a group. Of the first group none is clearly better than "
        "another. Models of neighbouring groups may be tied, too.",
    )
    return (order, Section("Every pair", (_pairs_table(comparison, target),)))


def _pairs_table(comparison: Comparison, target: int) -> Table:
    """Return the pairs of the best models, the better one first."""
    most_in_table = 100  # models whose pairs a page lists, the best: 4,950 pairs
    order = order_of(comparison, target)[:most_in_table].tolist()
    numbers = [pair_number(comparison, one, other) for k, one in enumerate(order) for other in order[k + 1 :]]
    found = [PairFinding.of(comparison, number, target) for number in numbers]
    in_points = ("difference", "low", "high", "detectable")
    rows: dict[str, Any] = {name: [100.0 * float(getattr(one, name)) for one in found] for name in in_points}
    # no scores are so far apart
    rows["detectable"] = [one if one < 100.0 else float("nan") for one in rows["detectable"]]
    rows |= {name: [getattr(one, name) for one in found] for name in ("better", "worse", "probability", "n_items")}
    rows |= {"clear": [one.is_clear for one in found], "p_holm": comparison.tests.p_holm[numbers, target]}
    level = level_words(comparison.spec.level)
    columns = (
        *heads("better", "worse", "difference"),
        Column("low", f"{level} from", "number", explanation="Adjusted for the number of pairs"),
        *heads("high"),
        Column("probability", "Probability", "number", 3, "That the first is better"),
        *heads("p_holm", "clear", "detectable"),
        Column("n_items", "Questions", "count", explanation="That both answered"),
    )
    n_models = len(comparison.model_ids)
    cut = f"Pairs of the {most_in_table} best of {n_models} models." if n_models > most_in_table else ""
    return Table.of("Differences of pairs", "pairs", rows, columns, note=cut)


def deciding_items(
    bank: Bank, responses: ResponseMatrix, selection: Selection | None, pair: tuple[str, str], target: str = OVERALL
) -> Data:
    """Return the items that two models answered differently, those with the most say first.

    ``contribution_i = 100 t_s w_i d_i / sum w`` with ``d_i`` the first model's response less the second's, ``w_i`` the
    item's weight, the sum over the items of its scenario s that both answered, and ``t_s`` the weight of the scenario
    in the target: over all items they add up to the raw difference, in points.
    """
    with unsaid(DataWarning):  # given when the models were compared
        known = known_items(bank, responses, selection, ignore_unknown=True)
        both = known.take(models=known.model_indices(pair))
        compared = ComparedModels.create(bank, both, selection, target)
    observations, scenarios = compared.observations, compared.scenarios()
    difference = observations.responses[0] - observations.responses[1]
    weights = np.where(np.isnan(difference), 0.0, observations.weights)
    totals = np.bincount(scenarios, weights=weights, minlength=compared.bank.targets.n_scenarios)[scenarios]
    share = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0.0)
    contribution = 100.0 * compared.target_weights()[0][scenarios] * share * np.nan_to_num(difference)
    table = bank.items[observations.positions.tolist()]
    easy = table["mean_response"].to_numpy()
    # of items with equal say, hard ones that the first model got right and easy ones that it got wrong come first
    surprise = np.where(contribution > 0.0, easy, -easy)
    order = np.lexsort((surprise, -np.abs(np.round(contribution, 9))))
    order = order[np.abs(np.nan_to_num(contribution[order])) > 0.0]
    first, second = observations.responses[:, order]
    chosen = {name: table[name][order.tolist()].to_list() for name in ("item_id", "scenario")}
    numbers = {"past": easy[order], "contribution": contribution[order], "first": first, "second": second}
    return Data("deciding", {**chosen, **numbers})


def _deciding_section(bank: Bank, items: Data, pair: tuple[str, str], target: str, *, uses_past: bool) -> Section:
    """Return the section on the items that decide between two models."""
    total = float(np.sum(items.columns["contribution"]))
    better, worse = (sum(sign * value > 0.0 for value in items.columns["contribution"]) for sign in (1.0, -1.0))
    lead = (
        f"{pair[0]} did better than {pair[1]} on {plural(better, 'question')} and worse on {worse}. Together they make "
        f"a raw difference of {points(0.01 * total, is_signed=True)} on the {target} score."
    )
    if uses_past:
        lead += " The estimate above also uses past models' answers to these questions."
    if not len(items):
        return Section("Questions that decide", (), lead)
    columns = (
        *heads("item_id"),
        *(
            Column(side, shortened(name, 18), "response", explanation=f"Answer of {name}")
            for side, name in zip(("first", "second"), pair, strict=True)
        ),
        Column("contribution", "Points", "number", 2, f"Of the raw difference; positive for {pair[0]}"),
        *heads("past", "scenario"),
    )
    note = "Questions that count most come first; of equal ones, the most surprising answers."
    answers = {name: np.asarray(items.columns[side]) for side, name in zip(("first", "second"), pair, strict=True)}
    entries = item_entries(bank, bank.responses.item_indices(items.columns["item_id"]), answers)
    table = Table("Questions that the two answered differently", items, columns, note=note, entries=entries)
    return Section("Questions that decide", (table,), lead)
