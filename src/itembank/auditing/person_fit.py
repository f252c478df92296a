"""How well answers of new models fit a bank, overall, by group of items and in order: `check_fit`, `FitCheck`."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from itembank.auditing.fit_statistics import (
    NAMED,
    ItemGroup,
    cumulative_sums,
    detectable_rises,
    fit_p_values,
    joint_p_value,
    onset,
)
from itembank.auditing.past_fit import (
    check_folds,
    factor_model_of,
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
from itembank.estimation.estimates import known_number, typicality_among
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


@dataclass(frozen=True, slots=True)
class SurprisingAnswer:
    """An answer that a model's other answers did not suggest; response and expectation run from 0 to 1."""

    item_id: str
    response: float
    expected: float


@dataclass(frozen=True, slots=True)
class GroupFit:
    """Answers of one model to a group of items beside what its other answers suggest.

    Attributes
    ----------
    name, kind : str
        Kind is 'scenario', 'subscenario' or 'named'.
    n_items, n_reference : int
        Answers to the group's items, and those that they are compared with.
    mean, expected : float
        Mean answer, and what the reference suggests.
    p_value : float
        How often a past model, cross-validated, is as unusual: for a named group, whose answers are that much
        better on it; for others, which differ as much, either way, in any of the groups.
    detectable : float
        Rise that is found nine times in ten, from 0 to 1; NaN but for named groups.
    """

    name: str
    kind: str
    n_items: int
    n_reference: int
    mean: float
    expected: float
    p_value: float
    detectable: float

    @property
    def difference(self) -> float:
        """Mean less expectation."""
        return self.mean - self.expected

    @property
    def is_flagged(self) -> bool:
        """Whether the group is unusual."""
        return self.p_value < RARE

    @property
    def verdict(self) -> str:
        """What to make of it, in a word or two."""
        if math.isnan(self.p_value):
            return "unknown"
        if not self.is_flagged:
            return "as expected"
        return "higher" if self.difference > 0.0 else "lower"

    def in_words(self) -> str:
        """Say it in points."""
        return f"{self.name} {100.0 * abs(self.difference):.1f} points {'higher' if self.difference > 0 else 'lower'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the record; scores run from 0 to 1."""
        names = ("kind", "n_items", "n_reference", "mean", "expected", "difference")
        record = {"group": self.name, **{name: getattr(self, name) for name in names}}
        unsure = {name: known_number(getattr(self, name)) for name in ("p_value", "detectable")}
        return {**record, **unsure, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class OrderFit:
    """Whether the answers of a session change on the way.

    Attributes
    ----------
    cusum : float
        Largest excursion of the cumulative sums.
    p_value : float
        How often a past model, cross-validated, has as large a one on the same items in the same order.
    first_answer : int
        Answer from which on the excursion began, from 1.
    got_better : bool
    """

    cusum: float
    p_value: float
    first_answer: int
    got_better: bool

    @property
    def is_flagged(self) -> bool:
        """Whether the session is unusual."""
        return self.p_value < RARE

    def in_words(self) -> str:
        """Say what happened."""
        way = "better" if self.got_better else "worse"
        begin = f"from answer {self.first_answer} on (p {self.p_value:.3f})"
        return f"answers get {way} than the earlier ones suggest {begin}"


@dataclass(frozen=True, slots=True)
class ModelFit:
    """How well the answers of one model fit.

    Attributes
    ----------
    model_id : str
    n_items, n_past : int
        Answers, and past models that they are compared with.
    misfit, typicality : float
        As of an estimate (`Typicality`): mean squared distance from what past answers suggest, and the fraction of
        past models that fitted no better.
    outfit : float
        Mean squared surprise of right and wrong answers at the model's ability, by the item model: 1 on average.
    p_value : float
        How often a past model is as unusual, by misfit, by outfit or in the most unusual of the groups.
    groups : tuple of GroupFit
    right, wrong : tuple of SurprisingAnswer
        The answers that were most against expectation, the most surprising first.
    order : OrderFit or None
        Where the order of the answers is known.
    """

    model_id: str
    n_items: int
    n_past: int
    misfit: float
    typicality: float
    outfit: float
    p_value: float
    groups: tuple[GroupFit, ...]
    right: tuple[SurprisingAnswer, ...]
    wrong: tuple[SurprisingAnswer, ...]
    order: OrderFit | None

    @property
    def is_flagged(self) -> bool:
        """Whether the model answers unlike past models."""
        return self.p_value < RARE

    @property
    def verdict(self) -> str:
        """What to make of it, in a word."""
        return "unknown" if math.isnan(self.p_value) else "misfits" if self.is_flagged else "fits"

    @property
    def unusual_groups(self) -> tuple[GroupFit, ...]:
        """Groups that are unusual, but named ones."""
        return tuple(one for one in self.groups if one.kind != NAMED and one.is_flagged)

    @property
    def raised_groups(self) -> tuple[GroupFit, ...]:
        """Named groups that are answered better than expected."""
        return tuple(one for one in self.groups if one.kind == NAMED and one.is_flagged)

    def sentences(self) -> Iterator[str]:
        """Say what is unusual."""
        if self.is_flagged:
            where = ", ".join(one.in_words() for one in self.unusual_groups)
            yield (
                f"{self.model_id}: answers unlike past models (typicality {self.typicality:.2f}, "
                f"p {self.p_value:.3f}){': ' + where if where else ''}. Its intervals are learnt from models that "
                f"answer differently. Unexpectedly wrong: {_listed(self.wrong)}; unexpectedly right: "
                f"{_listed(self.right)}."
            )
        for group in self.raised_groups:
            yield (
                f"{self.model_id}: {group.in_words()} than its other answers suggest (p {group.p_value:.3f}): it "
                f"may know these items. No interval covers that: trust the other items alone."
            )
        if self.order is not None and self.order.is_flagged:
            yield f"{self.model_id}: {self.order.in_words()}."

    def to_dict(self) -> dict[str, Any]:
        """Return the record, without the groups."""
        order: dict[str, Any] = {}
        if self.order is not None:
            order["order_p_value"] = known_number(self.order.p_value)
            order["changed_from"] = self.order.first_answer if self.order.is_flagged else None
        return {
            **{name: getattr(self, name) for name in ("model_id", "n_items", "n_past")},
            **{name: known_number(getattr(self, name)) for name in ("misfit", "typicality", "outfit", "p_value")},
            "verdict": self.verdict,
            "groups": [one.name for one in (*self.unusual_groups, *self.raised_groups)],
            **order,
            "wrong_against_expectation": [one.item_id for one in self.wrong],
            "right_against_expectation": [one.item_id for one in self.right],
        }


@dataclass(frozen=True, slots=True, repr=False)
class FitCheck(Tabular):
    """How well the answers of new models fit a bank.

    Attributes
    ----------
    bank_id : str
    changes : tuple of str
        What the tables say of other contents, prompts, versions and harnesses than the bank's.
    models : tuple of ModelFit
    """

    bank_id: str
    changes: tuple[str, ...]
    models: tuple[ModelFit, ...]

    @property
    def suits(self) -> bool:
        """Whether nothing changed, and the models are no more unusual than chance explains, in any of the tests.

        False, too, for a single unusual model, though one clean model of twenty is called unusual by chance.
        """
        tests = [
            [one.p_value for one in self.models],
            *([one.p_value for one in groups] for groups in self._named().values()),
            [one.order.p_value for one in self.models if one.order is not None],
        ]
        return not self.changes and all(joint_p_value(found) >= RARE for found in tests)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Sentences on what is unusual, or that nothing is."""
        found = tuple(sentence for one in self.models for sentence in one.sentences())
        told = [one.model_id for one in self.models if one.n_past >= FEWEST_PAST]
        return found or ((f"{shown(told)}: nothing unusual.",) if told else ())

    @property
    def hints(self) -> tuple[str, ...]:
        """What this check could have found, and what it cannot find."""
        hints = []
        few = [one for one in self.models if one.n_past < FEWEST_PAST]
        if few:
            most = max(one.n_past for one in few)
            hints.append(
                f"{shown([one.model_id for one in few])}: compared with at most {most} past models that answered these "
                f"items; with fewer than {FEWEST_PAST} none can be called unusual."
            )
        named = self._named()
        for name, groups in named.items():
            known = [one for one in groups if not math.isnan(one.detectable)]
            if not known:
                hints.append(
                    f"{name}: too few answers to compare. At least 5 to its items and 10 to the others are needed, and "
                    "past models that answered them."
                )
                continue
            worst = max(known, key=lambda one: one.detectable)
            hints.append(
                f"{name}: with {worst.n_items} answers beside {worst.n_reference} others a rise of "
                f"{100.0 * worst.detectable:.0f} points is found nine times in ten; smaller ones can be missed."
            )
        return (*hints, SHIFT) if named else (*hints, ONE_RUN, SHIFT)

    def _named(self) -> dict[str, list[GroupFit]]:
        """Each named group of all models that answered enough of it."""
        found: dict[str, list[GroupFit]] = {}
        for group in (group for one in self.models for group in one.groups if group.kind == NAMED):
            found.setdefault(group.name, []).append(group)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One record a model."""
        return [one.to_dict() for one in self.models]

    def group_rows(self) -> list[dict[str, Any]]:
        """One record a model and group."""
        return [{"model_id": one.model_id, **group.to_dict()} for one in self.models for group in one.groups]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "bank": self.bank_id,
            "suits": self.suits,
            "changes": list(self.changes),
            "verdicts": list(self.verdicts),
            "hints": list(self.hints),
        }


def _listed(answers: Sequence[SurprisingAnswer]) -> str:
    return ", ".join(one.item_id for one in answers) or "none"


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
) -> Iterator[ModelFit]:
    """Compare models that answered the same items with the bank's own, left out."""
    factors, items, is_ordered = factor_model_of(bank), answered.items, answered.is_ordered
    found = statistics_by(bank, items, answered.responses, groups, is_ordered=is_ordered)
    if answered.session is None:
        past = past_statistics(bank, items, groups, is_ordered=is_ordered, progress=progress)
    else:
        past = past_session_statistics(bank, answered.session, items.size, groups, progress=progress)
    p_overall, p_groups, p_order = fit_p_values(found, past, groups)
    typicality = typicality_among(past.misfit, found.misfit)
    residual, variance = item_residuals(factors, items, answered.responses)
    detectable = detectable_rises(past)
    n_past = int(np.sum(~np.isnan(past.misfit)))
    ids = bank.responses.item_ids
    for row, name in enumerate(answered.model_ids):
        answers, deviation = answered.responses[row], residual[row] / np.sqrt(variance)
        expected = np.clip(answers - residual[row], 0.0, 1.0)
        # three each way; within a standard deviation of what is expected an answer is no surprise
        right, wrong = (
            tuple(
                SurprisingAnswer(ids[items[i]], float(answers[i]), float(expected[i]))
                for i in np.argsort(-sign * deviation, kind="stable")[:3].tolist()
                if sign * deviation[i] > 1.0
            )
            for sign in (1.0, -1.0)
        )
        of_groups = []
        for column, group in enumerate(groups):
            inside = group.is_member[items]
            is_named, difference = group.kind == NAMED, float(found.difference[row, column])
            if not is_named and np.isnan(difference):  # too little of it was answered
                continue
            mean = float(answers[inside].mean()) if inside.any() else np.nan
            of_groups.append(
                GroupFit(
                    name=group.name,
                    kind=group.kind,
                    n_items=int(inside.sum()),
                    n_reference=int(group.is_reference[items].sum()),
                    mean=mean,
                    expected=mean - difference,
                    p_value=float(p_groups[row, column]),
                    detectable=float(detectable[column]) if is_named else np.nan,
                )
            )
        order = None
        if is_ordered:
            sums = cumulative_sums(successive_residuals(factors, items, answers[None]))[:, 0]
            order = OrderFit(float(np.abs(sums).max()), float(p_order[row]), *onset(sums))
        yield ModelFit(
            model_id=name,
            n_items=int(items.size),
            n_past=n_past,
            misfit=float(found.misfit[row]),
            outfit=float(found.outfit[row]),
            typicality=float(typicality[row]),
            p_value=float(p_overall[row]),
            groups=tuple(of_groups),
            right=right,
            wrong=wrong,
            order=order,
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
    models: dict[str, ModelFit] = {}
    sets = list(_answered(bank, matrix, order or {}, sessions or {}))
    for number, one in enumerate(sets):
        start, end = (of_folds + (1.0 - of_folds) * (number + k) / len(sets) for k in (0, 1))
        progress("examining models", start)
        fits = model_fits(bank, one, of_bank, progress=part_of(progress, start, end))
        models.update((found.model_id, found) for found in fits)
    in_order = tuple(models[name] for name in matrix.model_ids if name in models)
    return FitCheck(bank.bank_id, changes, in_order)


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
