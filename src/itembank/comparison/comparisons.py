"""`Comparison`: differences of models with everything that is needed to interpret them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from itembank.comparison.compared_models import ComparedModels
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.difference_tests import DifferenceTests, mcnemar_exact, paired_t
from itembank.comparison.pairs import PairedDifferences, model_pairs
from itembank.estimation.estimates import Scores, Typicality, known_number
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.score_names import OVERALL
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class ModelPairs:
    """What the responses of n_pairs pairs of models say by themselves.

    Attributes
    ----------
    first, second : (n_pairs,)
        Which model is a, which is b; every pair is there once, a before b in `model_ids`.
    n_shared_items, n_items_a, n_items_b : (n_pairs, n_targets)
    only_a_right, only_b_right : (n_pairs, n_targets)
        Discordant items; NaN when responses are not all 0 or 1.
    raw_difference : (n_pairs, n_targets)
        Weighted mean difference over the shared items; NaN where a scenario has none.
    """

    first: IntArray
    second: IntArray
    n_shared_items: IntArray
    n_items_a: IntArray
    n_items_b: IntArray
    only_a_right: FloatArray
    only_b_right: FloatArray
    raw_difference: FloatArray

    @classmethod
    def of(cls, compared: ComparedModels, pairs: PairedDifferences) -> Self:
        """Take the fields that are shown from the differences of all pairs."""
        first, second = model_pairs(compared.responses.n_models)
        observed = compared.counts().observed
        return cls(
            first,
            second,
            pairs.n_shared,
            observed[first],
            observed[second],
            _if_binary(compared, pairs.only_a),
            _if_binary(compared, pairs.only_b),
            compared.if_of_items(pairs.difference),
        )


@dataclass(frozen=True, slots=True)
class ReferenceTests:
    """Results of textbook methods on the raw shared items, each (n_pairs, n_targets); NaN of a headline score.

    They take items as a random sample of infinitely many. McNemar's needs responses of 0 and 1.
    """

    mcnemar_p: FloatArray
    paired_t_p: FloatArray

    @classmethod
    def of(cls, compared: ComparedModels, pairs: PairedDifferences) -> Self:
        """Test all pairs."""
        mcnemar = compared.if_of_items(_if_binary(compared, mcnemar_exact(pairs.only_a, pairs.only_b)))
        student = compared.if_of_items(paired_t(pairs.difference, pairs.variance_of_many, pairs.degrees))
        return cls(mcnemar, student)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Models in order, with tied groups.

    The best model begins group 1; going down, the first model whose difference to the best of the group is
    significant after Holm's adjustment begins the next group. Within a group nobody differs significantly from
    its best; models of neighbouring groups may still be tied with each other.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    targets : tuple of n_targets names
    score : (n_models, n_targets)
        Scores that the ranking goes by.
    group : (n_models, n_targets)
        Tied group from 1.
    """

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    score: FloatArray
    group: IntArray

    @classmethod
    def of(cls, compared: ComparedModels, score: FloatArray, is_different: BoolArray) -> Self:
        """Group models by which pairs differ significantly, (n_pairs, n_targets)."""
        n_models = score.shape[0]
        first, second = model_pairs(n_models)
        groups = [
            tied_groups(values, square(different, first, second, n_models))[1]
            for values, different in zip(score.T, is_different.T, strict=True)
        ]
        return cls(tuple(compared.responses.model_ids), compared.targets, score, np.column_stack(groups))

    def rows(self) -> list[dict[str, Any]]:
        """One record for each target and model, best first, as the command line prints them."""
        rows = []
        for t, target in enumerate(self.targets):
            order = np.argsort(-self.score[:, t], kind="stable")
            sizes = np.bincount(self.group[:, t])
            rows += [
                {
                    "target": target,
                    "rank": rank,
                    "group": int(self.group[model, t]),
                    "n_in_group": int(sizes[self.group[model, t]]),
                    "model_id": self.model_ids[model],
                    "score": float(self.score[model, t]),
                }
                for rank, model in enumerate(order.tolist(), start=1)
            ]
        return rows


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """Differences of n_pairs pairs of models on n_targets targets, all signed b - a.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    targets : tuple of n_targets names
    difference : Scores
        Score of b less score of a, over the full benchmark, with standard error and interval, each
        (n_pairs, n_targets); intervals are cut to [-1, 1].
    tests : DifferenceTests
    pairs : ModelPairs
    reference : ReferenceTests
    ranking : Ranking
    spec : ComparisonSpec
        With the level of the intervals, and the power.
    method : str
        The method taken, also if 'auto' was asked for.
    interval_kind : str
        'calibrated': on pairs of past models; 'classical': the standard error of a random sample.
    bank_id, target_id : str
    typicality : Typicality
        How typical each model's answers are of the past models; unknown (NaN) for raw differences, and where the
        bank has too few models.
    last : str
        Name of the score above those of scenarios: 'overall', or a headline score.
    explanation : str
        Why the intervals of some targets are 'classical'; '' if none are.
    """

    schema = "compare"

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    difference: Scores
    tests: DifferenceTests
    pairs: ModelPairs
    reference: ReferenceTests
    ranking: Ranking
    spec: ComparisonSpec
    method: str
    interval_kind: str
    bank_id: str
    target_id: str
    typicality: Typicality
    last: str = OVERALL
    explanation: str = ""

    @property
    def flagged_models(self) -> tuple[str, ...]:
        """Models that answered unlike the past models (`Typicality`): intervals with them deserve care."""
        return tuple(self.model_ids[row] for row in np.flatnonzero(self.typicality.is_flagged).tolist())

    @property
    def is_exact(self) -> bool:
        """Whether all models answered every item, and the difference of just these runs is meant."""
        return bool(np.all(self.difference.standard_error == 0.0))

    @property
    def n_pairs(self) -> int:
        """Number of pairs of models."""
        return int(self.pairs.first.shape[0])

    def rows(self) -> list[dict[str, Any]]:
        """One record for each pair and target, as the command line prints them."""
        columns = {name: values.tolist() for name, values in self._columns().items()}
        notes, typicality = self._notes(), self.typicality.typicality
        facts = {
            "level": self.spec.level,
            "estimand": self.spec.estimand,
            "method": self.method,
            "interval": self.interval_kind,
            "bank": self.bank_id,
            "target_id": self.target_id,
        }
        first, second = self.pairs.first.tolist(), self.pairs.second.tolist()
        flags = self._flags()
        return [
            {
                "model_a": self.model_ids[first[k]],
                "model_b": self.model_ids[second[k]],
                "target": target,
                **{name: column[k][t] for name, column in columns.items()},
                "typicality_a": known_number(typicality[first[k]]),
                "typicality_b": known_number(typicality[second[k]]),
                **facts,
                "note": "; ".join(part for part in (notes[k][t], flags[k], *self.notes_on_intervals()) if part),
            }
            for k in range(self.n_pairs)
            for t, target in enumerate(self.targets)
        ]

    def _columns(self) -> dict[str, FloatArray | IntArray]:
        """Return what is printed of each pair and target, (n_pairs, n_targets), in the order of the columns."""
        difference, tests, pairs, reference = self.difference, self.tests, self.pairs, self.reference
        return {
            "difference": difference.value,
            "low": difference.low,
            "high": difference.high,
            "probability_b_better": tests.probability_b_better,
            "standard_error": difference.standard_error,
            "p_value": tests.p_value,
            "p_holm": tests.p_holm,
            "smallest_detectable_difference": tests.smallest_detectable_difference,
            "n_shared_items": pairs.n_shared_items,
            "n_items_a": pairs.n_items_a,
            "n_items_b": pairs.n_items_b,
            "only_a_right": pairs.only_a_right,
            "only_b_right": pairs.only_b_right,
            "raw_difference": pairs.raw_difference,
            "mcnemar_p": reference.mcnemar_p,
            "paired_t_p": reference.paired_t_p,
        }

    def notes_on_items(self) -> list[str]:
        """Return the remarks on which items the models answered, each once."""
        return list(dict.fromkeys(text for texts in self._notes() for text in texts if text))

    def notes_on_intervals(self) -> list[str]:
        """Return what one must know of all intervals."""
        if not self.explanation or self.is_exact:
            return []
        return [f"the intervals take the items as a random sample, since {self.explanation}"]

    def _flags(self) -> list[str]:
        """Return what each pair's typicality says of its interval, '' where nothing."""
        flagged = self.typicality.is_flagged
        which = flagged[self.pairs.first] + 2 * flagged[self.pairs.second]
        names = ("", "model_a", "model_b", "both models")
        return [f"{names[k]} answered unlike most past models: take the interval with care" if k else "" for k in which]

    def _notes(self) -> list[list[str]]:
        """Return the remark on the items of each pair and target, '' where there is none."""
        pairs = self.pairs
        answers_differ = (pairs.n_shared_items < pairs.n_items_a) | (pairs.n_shared_items < pairs.n_items_b)
        texts = np.array(
            [
                "",
                "the models answered different items: what they do not share counts as independent, the interval is "
                "wider than on the same items",
                "no shared items for this target: the errors count as independent",
                "not enough responses for this target",
            ]
        )
        code = np.where(pairs.n_shared_items == 0, 2, answers_differ.astype(np.int64))
        result: list[list[str]] = texts[np.where(np.isnan(self.difference.value), 3, code)].tolist()
        return result


def _if_binary(compared: ComparedModels, values: FloatArray) -> FloatArray:
    """Keep values that are defined for responses of 0 and 1 only; NaN for other responses."""
    return values if compared.responses.is_binary else np.full(values.shape, np.nan)


def tied_groups(
    scores: FloatArray,  # (n_models,): NaN comes last
    is_different: BoolArray,  # (n_models, n_models): Symmetric: which pairs differ significantly
) -> tuple[IntArray, IntArray]:
    """Order of the models from best to worst, and the group of each.

    The best model begins group 1; going down, the first model that differs significantly from the best of the
    current group begins the next. Groups are runs of the order, so every model is in exactly one; two models of
    neighbouring groups need not differ significantly from each other.

    Returns order (n_models,): Rows of the models, best first; equal scores in the order they came; group (n_models,):
    Group of each model, in the order of `scores`, from 1.
    """
    order = np.argsort(-scores, kind="stable").astype(np.int64)
    group = np.ones(scores.shape[0], dtype=np.int64)
    start, number = 0, 1
    while True:  # a round for each group, not for each model
        group[order[start:]] = number
        beyond = np.flatnonzero(is_different[order[start], order[start + 1 :]])
        if beyond.size == 0:
            return order, group
        start, number = start + 1 + int(beyond[0]), number + 1


def square(values: BoolArray, first: IntArray, second: IntArray, n_models: int) -> BoolArray:
    """Values of pairs (n_pairs,) as a symmetric matrix (n_models, n_models)."""
    matrix = np.zeros((n_models, n_models), dtype=bool)
    matrix[first, second] = values
    return matrix | matrix.T
