"""How well answers of new models fit a bank, overall, by group of items and in order: `check_fit`, `FitCheck`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from itembank.auditing.fit_statistics import (
    NAMED,
    ItemGroup,
    check_folds,
    cumulative_sums,
    detectable_rises,
    factor_model_of,
    fit_p_values,
    joint_p_value,
    onset,
    past_session_statistics,
    past_statistics,
    patterns,
    statistics_by,
)
from itembank.auditing.run_conditions import check_marked_alike, with_same_content
from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_new_responses
from itembank.bank.bank_views import aside_items
from itembank.bank.banks import Bank
from itembank.errors import DataError, DataWarning, ParameterError, remedy, shown, warn
from itembank.estimation.asked import known_items
from itembank.estimation.estimates import typicality_among
from itembank.estimation.observations import bank_positions
from itembank.irt.linear_gaussian import item_residuals, successive_residuals
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.session_spec import SessionSpec
from itembank.tabular import Tabular

RARE: Final = 0.05
"""A model, a named group or a session is called unusual if fewer past models are as unusual."""
FEWEST_PAST: Final = 20
"""With fewer past models even the most unusual of all is not rarer than that."""
SHIFT: Final = (
    "No statistic shows a change that makes all answers a little worse or better: it looks like lower or higher "
    "ability. Only the record of the runs (prompt, task version, harness) can tell."
)
ONE_RUN: Final = (
    "Leaked items: one ordinary run cannot show them. If a model has seen 20 % of the items, this check notices in "
    "about one case of three after 100 answers, and cannot say why. Name the suspected items (--group NAME=FILE; "
    "groups= in Python) to compare them with the others."
)


MODELS: Final[dict[str, Any]] = {
    "model_id": pl.String,
    **dict.fromkeys(("n_items", "n_past"), pl.Int64),
    **dict.fromkeys(("misfit", "typicality", "outfit", "p_value"), pl.Float64),
    "verdict": pl.String,
    "groups": pl.List(pl.String),
    "order_p_value": pl.Float64,
    "changed_from": pl.Int64,
    **dict.fromkeys(("wrong_against_expectation", "right_against_expectation"), pl.List(pl.String)),
}
GROUPS: Final[dict[str, Any]] = {
    **dict.fromkeys(("model_id", "group", "kind"), pl.String),
    **dict.fromkeys(("n_items", "n_reference"), pl.Int64),
    **dict.fromkeys(("mean", "expected", "difference", "p_value", "detectable"), pl.Float64),
    "verdict": pl.String,
}
"""Columns of both tables of `FitCheck`, which says what they are."""


@dataclass(frozen=True, slots=True, repr=False)
class FitCheck(Tabular):
    """How well the answers of new models fit a bank.

    Attributes
    ----------
    bank_id : str
    changes : tuple of str
        What the tables say of other contents, prompts, versions and harnesses than the bank's.
    table : table of one row a model
        `model_id`; `n_items` answers, and `n_past` models that they are compared with; `misfit` and `typicality`, as of
        an estimate (`Typicality`): mean squared distance from what past answers suggest, and the fraction of past
        models that fitted no better; `outfit`, mean squared surprise of right and wrong answers at the model's ability,
        by the item model: 1 on average; `p_value`, how often a past model is as unusual, by misfit, by outfit or in the
        most unusual of the groups; `verdict`, in a word; `groups` that are unusual, and named ones that are answered
        better than expected; ids of the three answers each way that were most against expectation. Where the order of
        answers is known, `order_p_value`, how often a past model's cumulative sums go as far, and the answer that the
        model `changed_from`, if that is rare.
    groups : table of one row a model and group of items
        `n_items` answers to the group's items, and `n_reference` that they are compared with; `mean` answer, what the
        reference suggests (`expected`) and their `difference`; `p_value`, how often a past model, cross-validated, is
        as unusual: for a named group, whose answers are that much better on it; for others, which differ as much,
        either way, in any of the groups; `detectable` rise of a named group, which is found nine times in ten;
        `verdict`.
    found : tuple of str
        Sentences on what is unusual.
    """

    header = ("bank=bank_id", "suits", "changes", "verdicts", "hints")

    bank_id: str
    changes: tuple[str, ...]
    table: pl.DataFrame
    groups: pl.DataFrame
    found: tuple[str, ...]

    @property
    def suits(self) -> bool:
        """Whether nothing changed, and the models are no more unusual than chance explains, in any of the tests.

        False, too, for a single unusual model, though one clean model of twenty is called unusual by chance.
        """
        tests = [self.table["p_value"], *(part["p_value"] for _, part in self._named())]
        tests += [self.table["order_p_value"]] if "order_p_value" in self.table.columns else []
        return not self.changes and all(joint_p_value(one.drop_nulls().to_list()) >= RARE for one in tests)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Sentences on what is unusual, or that nothing is."""
        told = self.table.filter(pl.col("n_past") >= FEWEST_PAST)["model_id"].to_list()
        return self.found or ((f"{shown(told)}: nothing unusual.",) if told else ())

    @property
    def hints(self) -> tuple[str, ...]:
        """What this check could have found, and what it cannot find."""
        hints = []
        few = self.table.filter(pl.col("n_past") < FEWEST_PAST)
        if few.height:
            most = max(few["n_past"].to_list())
            hints.append(
                f"{shown(few['model_id'].to_list())}: compared with at most {most} past models that answered these "
                f"items; with fewer than {FEWEST_PAST} none can be called unusual."
            )
        named = self._named()
        for name, part in named:
            known = part.drop_nulls("detectable").sort("detectable", descending=True, maintain_order=True)
            if not known.height:
                hints.append(
                    f"{name}: too few answers to compare. At least 5 to its items and 10 to the others are needed, and "
                    "past models that answered them."
                )
                continue
            worst = known.row(0, named=True)
            hints.append(
                f"{name}: with {worst['n_items']} answers beside {worst['n_reference']} others a rise of "
                f"{100.0 * worst['detectable']:.0f} points is found nine times in ten; smaller ones can be missed."
            )
        return (*hints, SHIFT) if named else (*hints, ONE_RUN, SHIFT)

    def _named(self) -> list[tuple[str, pl.DataFrame]]:
        parts = self.groups.filter(kind=NAMED).group_by("group", maintain_order=True)
        return [(str(name), part) for (name,), part in parts]


def item_groups(
    bank: Bank, named: Mapping[str, Sequence[str]], reference: Sequence[str] | None
) -> tuple[ItemGroup, ...]:
    """Return the scenarios, the subscenarios and the named groups of a bank's items.

    A scenario is compared with all other items; a named group with the reference where there is one, else with all
    other items. A reference without a named group is compared with all items outside it. Items of lists that the bank
    keeps aside are left out, with a `DataWarning`.
    """
    trusted = None if reference is None else _marked(bank, reference, "the reference")
    marked = {name: _marked(bank, ids, f"group {name!r}") for name, ids in named.items()}
    if trusted is not None and not marked:
        marked = {"all others": ~trusted}
    _check(bank, marked, trusted)
    by_hand = [ItemGroup(name, NAMED, one, ~one if trusted is None else trusted) for name, one in marked.items()]
    items, names = bank.responses.items, bank.targets.scenarios
    scenarios = items["scenario"].to_numpy()
    in_table = []
    if len(names) > 1:
        in_table += [ItemGroup(name, "scenario", scenarios == name, scenarios != name) for name in names]
    parts = items.select(pl.struct("scenario", "subscenario").alias("part"))["part"]
    for scenario, part in items.select("scenario", "subscenario").drop_nulls().unique(maintain_order=True).iter_rows():
        inside = (parts.struct.field("scenario") == scenario) & (parts.struct.field("subscenario") == part)
        is_member = inside.fill_null(value=False).to_numpy()
        if 0 < is_member.sum() < np.sum(scenarios == scenario):  # not where it is the whole scenario
            in_table.append(ItemGroup(f"{scenario}/{part}", "subscenario", is_member, ~is_member))
    return (*in_table, *by_hand)


def _marked(bank: Bank, item_ids: Sequence[str], source: str) -> BoolArray:
    """Mark those items of a list that count, (n_items,)."""
    if isinstance(item_ids, str):
        raise ParameterError(f"{source} must be a sequence of item ids, got the text {item_ids!r}.")
    aside = dict.fromkeys(aside_items(bank, item_ids))
    if aside:
        warn(
            f"{len(aside)} of {len(item_ids)} items of {source} no longer count in the score of bank {bank.bank_id} "
            f"and are left out: {shown(list(aside))}.",
            DataWarning,
        )
    counting = pl.Series([item for item in item_ids if item not in aside], dtype=pl.String)
    result = np.zeros(bank.n_items, dtype=bool)
    result[bank_positions(bank, counting, source)] = True
    return result


def _check(bank: Bank, marked: Mapping[str, BoolArray], trusted: BoolArray | None) -> None:
    """Refuse groups that leave nothing to compare."""
    for name, is_member in marked.items():
        if not is_member.any() or is_member.all():
            raise ParameterError(
                f"group {name!r} must hold some of the {bank.n_items} items of the bank and not all, got "
                f"{int(is_member.sum())}."
            )
        both = [] if trusted is None else np.flatnonzero(is_member & trusted).tolist()
        if both:
            ids = [bank.responses.item_ids[position] for position in both]
            raise ParameterError(
                f"group {name!r} and the reference ({remedy('reference=', '--reference')}) must share no item, got "
                f"{len(both)} that are in both: {shown(ids)}."
            )
    if trusted is not None and not trusted.any():
        raise DataError("the reference must hold at least one item, got none.")


@dataclass(frozen=True, slots=True)
class Answered:
    """Models that answered the same items."""

    model_ids: tuple[str, ...]
    items: IntArray  # (n_observed,): Positions in the bank, in the order of answering where that is known
    responses: FloatArray  # (n_models, n_observed): Complete
    is_ordered: bool
    session: SessionSpec | None = None  # Of the adaptive session that chose the items


def model_fits(
    bank: Bank, answered: Answered, groups: tuple[ItemGroup, ...], *, progress: ProgressCallback
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, list[str]]]:
    """Compare models that answered the same items with the bank's own, left out.

    Returns the rows of both tables of `FitCheck`, and by model sentences on what is unusual.
    """
    factors, items, ids, answers = factor_model_of(bank), answered.items, answered.model_ids, answered.responses
    found = statistics_by(bank, items, answers, groups, is_ordered=answered.is_ordered)
    if answered.session is None:
        past = past_statistics(bank, items, groups, is_ordered=answered.is_ordered, progress=progress)
    else:
        past = past_session_statistics(bank, answered.session, items.size, groups, progress=progress)
    p_overall, p_groups, p_order = fit_p_values(found, past, groups)
    residual, variance = item_residuals(factors, items, answers)
    deviation, names = residual / np.sqrt(variance), np.array(bank.responses.item_ids, dtype=object)[items]
    of_groups = _group_rows(answered, groups, found.difference, p_groups, detectable_rises(past))
    of_models = {
        "model_id": ids,
        "n_items": [items.size] * len(ids),
        "n_past": [int(np.sum(~np.isnan(past.misfit)))] * len(ids),
        "misfit": found.misfit,
        "typicality": typicality_among(past.misfit, found.misfit),
        "outfit": found.outfit,
        "p_value": p_overall,
        "wrong_against_expectation": [_most_surprising(names, -one) for one in deviation],
        "right_against_expectation": [_most_surprising(names, one) for one in deviation],
    }
    said: dict[str, list[str]] = {one: [] for one in ids}
    if answered.is_ordered:  # of one model
        first, got_better = onset(cumulative_sums(successive_residuals(factors, items, answers))[:, 0])
        is_rare = bool(p_order[0] < RARE)
        of_models |= {"order_p_value": p_order, "changed_from": [first if is_rare else None]}
        if is_rare:
            way, begin = "better" if got_better else "worse", f"from answer {first} on (p {p_order[0]:.3f})"
            said[ids[0]] = [f"{ids[0]}: answers get {way} than the earlier ones suggest {begin}."]
    schema = {name: kind for name, kind in MODELS.items() if name in of_models}
    table = pl.DataFrame(of_models, schema=schema, nan_to_null=True)
    word = pl.when(pl.col("p_value") < RARE).then(pl.lit("misfits")).when(pl.col("p_value").is_not_null())
    unusual = of_groups.filter(pl.col("p_value") < RARE).sort(pl.col("kind") == NAMED, maintain_order=True)
    by_model = unusual.group_by("model_id").agg(groups=pl.col("group").unique(maintain_order=True))
    table = table.with_columns(verdict=word.then(pl.lit("fits")).otherwise(pl.lit("unknown")))
    table = table.join(by_model, on="model_id", how="left", maintain_order="left")
    table = table.with_columns(pl.col("groups").fill_null(pl.lit([], dtype=pl.List(pl.String))))
    for row in table.iter_rows(named=True):
        parts = list(unusual.filter(model_id=row["model_id"]).iter_rows(named=True))
        said[row["model_id"]] = [*_sentences(row, parts), *said[row["model_id"]]]
    return table, of_groups, said


def _group_rows(
    answered: Answered, groups: tuple[ItemGroup, ...], difference: FloatArray, p_values: FloatArray, rises: FloatArray
) -> pl.DataFrame:
    """Return the rows of groups: all named ones, and those of the bank of which a model answered enough."""
    items, n_models = answered.items, len(answered.model_ids)
    parts = [pl.DataFrame(schema=GROUPS)]
    for column, group in enumerate(groups):
        inside, is_named = group.is_member[items], group.kind == NAMED
        mean = (
            np.compress(inside, answered.responses, axis=1).mean(axis=1) if inside.any() else np.full(n_models, np.nan)
        )
        expected = mean - difference[:, column]
        numbers = {"mean": mean, "expected": expected, "difference": mean - expected}
        part = pl.DataFrame(numbers).with_columns(
            model_id=pl.Series(answered.model_ids, dtype=pl.String),
            group=pl.lit(group.name),
            kind=pl.lit(group.kind),
            n_items=pl.lit(int(inside.sum()), pl.Int64),
            n_reference=pl.lit(int(group.is_reference[items].sum()), pl.Int64),
            p_value=pl.Series(p_values[:, column], nan_to_null=True),
            detectable=pl.lit(float(rises[column]) if is_named and not np.isnan(rises[column]) else None, pl.Float64),
        )
        parts.append(part if is_named else part.filter(~np.isnan(difference[:, column])))
    rank = {name: place for place, name in enumerate(answered.model_ids)}
    table = pl.concat([part.select(*(name for name in GROUPS if name != "verdict")) for part in parts])
    table = table.sort(pl.col("model_id").replace_strict(rank, return_dtype=pl.Int64), maintain_order=True)
    higher = pl.when(pl.col("difference") > 0.0).then(pl.lit("higher")).otherwise(pl.lit("lower"))
    word = pl.when(pl.col("p_value").is_null()).then(pl.lit("unknown")).when(pl.col("p_value") < RARE).then(higher)
    return table.with_columns(verdict=word.otherwise(pl.lit("as expected")))


def _most_surprising(item_ids: npt.NDArray[np.object_], deviation: FloatArray) -> list[str]:
    """Return the three items answered furthest above expectation; within a standard deviation none is a surprise."""
    order = np.argsort(-deviation, kind="stable")[:3]
    return [str(one) for one in item_ids[order[deviation[order] > 1.0]]]


def _sentences(row: Mapping[str, Any], unusual: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    words = [(one, f"{one['group']} {100.0 * abs(one['difference']):.1f} points {one['verdict']}") for one in unusual]
    if row["verdict"] == "misfits":
        where = ", ".join(text for one, text in words if one["kind"] != NAMED)
        outfit = "" if row["outfit"] is None else f"outfit {row['outfit']:.2f}, "
        wrong, right = (", ".join(row[f"{one}_against_expectation"]) or "none" for one in ("wrong", "right"))
        yield (
            f"{row['model_id']}: answers unlike past models (typicality {row['typicality']:.2f}, {outfit}"
            f"p {row['p_value']:.3f}){': ' + where if where else ''}. Its intervals are learnt from models that "
            f"answer differently. Unexpectedly wrong: {wrong}; unexpectedly right: {right}."
        )
    for group, text in words:
        if group["kind"] == NAMED:
            yield (
                f"{row['model_id']}: {text} than its other answers suggest (p {group['p_value']:.3f}): it "
                f"may know these items. No interval covers that: trust the other items alone."
            )


def check_fit(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    reference: Sequence[str] | None = None,
    order: Mapping[str, Sequence[str]] | None = None,
    sessions: Mapping[str, SessionSpec] | None = None,
    ignore_unknown: bool = False,
    progress: ProgressCallback = silent,
) -> FitCheck:
    """Examine how well the answers of new models fit a bank, each model by itself.

    Everything is compared with past models, cross-validated, on the same items: no table of the normal
    distribution is used. What the tables say of other prompts, versions and harnesses than the bank's comes first.

    Parameters
    ----------
    bank : Bank or path
        With its responses and ten models or more.
    responses : ResponseMatrix, path or paths
        Of new models: full runs, selections or sessions. Items whose content is not the bank's are left out.
    groups : mapping of name to item ids, optional
        Items that are suspected of having leaked, by a name of yours: is a model better on them than its answers to
        other items suggest?
    reference : item ids, optional
        Items that cannot have leaked. Groups are compared with these alone; without groups all other items are.
    order : mapping of model id to item ids, optional
        The order in which a model answered, for a CUSUM: do answers get worse or better on the way?
    sessions : mapping of model id to SessionSpec, optional
        Settings of the adaptive session that asked a model whose order is known (`journal_responses` reads all of it
        from journals): it is compared with such sessions of past models, which take seconds the first time.
    ignore_unknown : bool
        Leave out items that the bank does not hold.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When the bank has no responses or fewer than ten models, an item is not in it, or answers are graded where
        those of the bank are right or wrong.
    ParameterError
        When a group is empty, or shares items with the reference.

    Examples
    --------
    >>> check = check_fit(bank, "new.csv", groups={"public": public_ids})  # doctest: +SKIP
    >>> check.verdicts  # doctest: +SKIP
    """
    bank = as_bank(bank)
    of_folds = 0.5  # of the progress bar, for fitting without some models
    check_folds(bank, part_of(progress, 0.0, of_folds))
    matrix = as_new_responses(bank, responses, same_content=False)
    matrix = known_items(bank, matrix, None, ignore_unknown=ignore_unknown)
    of_bank = item_groups(bank, groups or {}, reference)
    matrix, changes = with_same_content(bank, matrix)
    check_marked_alike(bank, matrix)
    tables, of_groups = (
        [pl.DataFrame(schema=MODELS).drop("order_p_value", "changed_from")],
        [pl.DataFrame(schema=GROUPS)],
    )
    said: dict[str, list[str]] = {}
    sets = list(_answered(bank, matrix, order or {}, sessions or {}))
    for number, one in enumerate(sets):
        start, end = (of_folds + (1.0 - of_folds) * (number + k) / len(sets) for k in (0, 1))
        progress("examining models", start)
        table, groups_of_set, found = model_fits(bank, one, of_bank, progress=part_of(progress, start, end))
        tables.append(table)
        of_groups.append(groups_of_set)
        said |= found
    ids = pl.DataFrame({"model_id": matrix.model_ids}, schema={"model_id": pl.String})
    together = pl.concat(tables, how="diagonal")
    together = together.select(name for name in MODELS if name in together.columns)
    return FitCheck(
        bank.bank_id,
        changes,
        ids.join(together, on="model_id", maintain_order="left"),
        ids.join(pl.concat(of_groups), on="model_id", maintain_order="left_right"),
        tuple(sentence for name in matrix.model_ids for sentence in said.get(name, ())),
    )


def _answered(
    bank: Bank, matrix: ResponseMatrix, order: Mapping[str, Sequence[str]], sessions: Mapping[str, SessionSpec]
) -> Iterator[Answered]:
    """Put models together that answered the same items; each whose order is known is alone."""
    positions = bank_positions(bank, matrix.items["item_id"], "responses")
    names = np.array(matrix.model_ids, dtype=object)
    is_ordered = np.isin(names, list(order))
    for rows, columns in patterns(np.where(is_ordered[:, None], np.nan, matrix.responses)):
        by_position = columns[np.argsort(positions[columns])]
        yield Answered(tuple(names[rows]), positions[by_position], matrix.responses[np.ix_(rows, by_position)], False)
    column_of = {item: column for column, item in enumerate(matrix.item_ids)}
    for row in np.flatnonzero(is_ordered).tolist():
        wanted = [column_of[item] for item in order[names[row]] if item in column_of]
        columns = np.array([one for one in wanted if not np.isnan(matrix.responses[row, one])], dtype=np.int64)
        if columns.size:
            answers = matrix.responses[np.ix_(np.array([row]), columns)]
            yield Answered((names[row],), positions[columns], answers, True, sessions.get(names[row]))
