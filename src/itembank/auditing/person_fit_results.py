"""`FitCheck`: how well the answers of new models fit a bank, overall, by group of items and in their order."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from itembank.auditing.fit_groups import NAMED
from itembank.auditing.fit_p_values import joint_p_value
from itembank.errors import shown
from itembank.estimation.estimates import OUTSIDE_GUARANTEE, known_number
from itembank.tabular import Tabular

RARE: Final = 0.05
"""A model, a named group or a session is called unusual where fewer of the bank's own models are as unusual."""
FEWEST_PAST: Final = 20
"""With fewer models left out even the most unusual of all is not rarer than that."""
SHIFT: Final = (
    "No statistic shows a change that makes all answers a little worse or better: it is lower or higher ability. Only "
    "what is written of the runs (prompt, task version, harness) can tell."
)
ONE_RUN: Final = (
    "Leaked items: one ordinary run cannot show them. Of models that know every fifth item one in three is called "
    "unusual after 100 answers, and nothing says why. Name the suspected items (--group NAME=FILE; groups= in Python), "
    "and they are compared with the others."
)


@dataclass(frozen=True, slots=True)
class SurprisingAnswer:
    """An answer that a model's other answers did not let expect; response and expectation run from 0 to 1."""

    item_id: str
    response: float
    expected: float


@dataclass(frozen=True, slots=True)
class GroupFit:
    """Answers of one model to a group of items beside what its other answers let expect.

    Attributes
    ----------
    name, kind : str
        Kind is 'scenario', 'subscenario' or 'named'.
    n_items, n_reference : int
        Answers to the group's items, and those that they are compared with.
    mean, expected : float
        Mean answer, and what the reference lets expect.
    p_value : float
        How often one of the bank's own models, left out, is as unusual: for a named group, whose answers are that much
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
        return {
            "group": self.name,
            "kind": self.kind,
            "n_items": self.n_items,
            "n_reference": self.n_reference,
            "mean": self.mean,
            "expected": self.expected,
            "difference": self.difference,
            "p_value": known_number(self.p_value),
            "detectable": known_number(self.detectable),
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class OrderFit:
    """Whether the answers of a session change on the way.

    Attributes
    ----------
    cusum : float
        Largest excursion of the cumulative sums.
    p_value : float
        How often one of the bank's own models, left out, has as large a one on the same items in the same order.
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
        return f"answers get {way} than the ones before let expect {begin}"


@dataclass(frozen=True, slots=True)
class ModelFit:
    """How well the answers of one model fit.

    Attributes
    ----------
    model_id : str
    n_items, n_past : int
        Answers, and models of the bank, left out, that they are compared with.
    misfit, typicality : float
        As of an estimate (`Typicality`): mean squared distance from what past answers let expect, and the fraction of
        the bank's models that fitted no better.
    outfit : float
        Mean squared surprise of right and wrong answers at the model's ability, by the item model: 1 on average.
    p_value : float
        How often one of the bank's own models is as unusual, by misfit, by outfit or in the most unusual of the groups.
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
        """Whether the model answers unlike the bank's models."""
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
                f"{self.model_id}: answers unlike the bank's models (typicality {self.typicality:.2f}, "
                f"p {self.p_value:.3f}){': ' + where if where else ''}. Its intervals are {OUTSIDE_GUARANTEE}. Wrong "
                f"against expectation: {_listed(self.wrong)}; right against it: {_listed(self.right)}."
            )
        for group in self.raised_groups:
            yield (
                f"{self.model_id}: {group.in_words()} than its other answers let expect (p {group.p_value:.3f}): it "
                f"may know these items. Its intervals are {OUTSIDE_GUARANTEE}: trust the other items alone."
            )
        if self.order is not None and self.order.is_flagged:
            yield f"{self.model_id}: {self.order.in_words()}."

    def to_dict(self) -> dict[str, Any]:
        """Return the record, without the groups."""
        order = (
            {}
            if self.order is None
            else {
                "order_p_value": known_number(self.order.p_value),
                "changed_from": self.order.first_answer if self.order.is_flagged else None,
            }
        )
        return {
            "model_id": self.model_id,
            "n_items": self.n_items,
            "n_past": self.n_past,
            "misfit": known_number(self.misfit),
            "typicality": known_number(self.typicality),
            "outfit": known_number(self.outfit),
            "p_value": known_number(self.p_value),
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

        One clean model of twenty is called unusual by chance, and a single one is taken for no chance.
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
        """What such a check could have found, and what it cannot."""
        return tuple(self._hints())

    def _named(self) -> dict[str, list[GroupFit]]:
        """Each named group of all models that answered enough of it."""
        found: dict[str, list[GroupFit]] = {}
        for group in (group for one in self.models for group in one.groups if group.kind == NAMED):
            found.setdefault(group.name, []).append(group)
        return found

    def _hints(self) -> Iterator[str]:
        few = [one.model_id for one in self.models if one.n_past < FEWEST_PAST]
        if few:
            most = max(one.n_past for one in self.models if one.n_past < FEWEST_PAST)
            yield (
                f"{shown(few)}: compared with at most {most} models of the bank that answered these items; with fewer "
                f"than {FEWEST_PAST} none can be called unusual."
            )
        named = self._named()
        for name, groups in named.items():
            yield from _power(name, groups)
        if not named:
            yield ONE_RUN
        yield SHIFT

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


def _power(name: str, groups: Sequence[GroupFit]) -> Iterator[str]:
    """Say how large a rise can be found."""
    known = [one for one in groups if not math.isnan(one.detectable)]
    if not known:
        yield (
            f"{name}: too few answers to compare. At least 5 to its items and 10 to the others are needed, and models "
            "of the bank that answered them."
        )
        return
    worst = max(known, key=lambda one: one.detectable)
    yield (
        f"{name}: with {worst.n_items} answers beside {worst.n_reference} others a rise of "
        f"{100.0 * worst.detectable:.0f} points is found nine times in ten; smaller ones can be missed."
    )


def _listed(answers: Sequence[SurprisingAnswer]) -> str:
    return ", ".join(one.item_id for one in answers) or "none"
