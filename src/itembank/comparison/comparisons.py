"""`Comparison`: differences of models with everything that is needed to interpret them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import polars as pl

from itembank.comparison.compared_models import ComparedModels
from itembank.comparison.comparison_spec import ComparisonSpec
from itembank.comparison.difference_tests import SAME, DifferenceTests, Evidence, mcnemar_exact, paired_t
from itembank.comparison.pairs import PairedDifferences, model_pairs
from itembank.errors import first_few, remedy, visible
from itembank.estimation.estimates import Scores, Typicality
from itembank.estimation.estimator_specs import RUN, DifferenceEstimand
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.responses.error_kinds import Errors
from itembank.responses.score_names import OVERALL
from itembank.tables import decimals_of, plural
from itembank.tabular import Fact, Tabular, picked


@dataclass(frozen=True, slots=True)
class ModelPairs:
    """What the responses of n_pairs pairs of models say by themselves, with textbook tests for reference.

    Attributes
    ----------
    first, second : (n_pairs,)
        Which model is a, which is b; every pair is there once, a before b in `model_ids`.
    n_shared_items, n_items_a, n_items_b : (n_pairs, n_targets)
    only_a_right, only_b_right : (n_pairs, n_targets)
        Discordant items; NaN when responses are not all 0 or 1.
    raw_difference : (n_pairs, n_targets)
        Weighted mean difference over the shared items; NaN where a scenario has none.
    mcnemar_p, paired_t_p : (n_pairs, n_targets)
        Tests that take the shared items as a random sample of infinitely many; NaN of a headline score, McNemar's
        where responses are not all 0 or 1.
    """

    first: IntArray
    second: IntArray
    n_shared_items: IntArray
    n_items_a: IntArray
    n_items_b: IntArray
    only_a_right: FloatArray
    only_b_right: FloatArray
    raw_difference: FloatArray
    mcnemar_p: FloatArray
    paired_t_p: FloatArray

    @classmethod
    def of(cls, compared: ComparedModels, pairs: PairedDifferences) -> Self:
        """Take what is shown from the differences of all pairs, and test these."""
        first, second = model_pairs(compared.responses.n_models)
        observed = compared.n_observed
        only_a, only_b = pairs.only_a, pairs.only_b
        if not compared.responses.is_binary:
            only_a, only_b = np.full((2, *only_a.shape), np.nan)
        return cls(
            *(first, second, pairs.n_shared, observed[first], observed[second], only_a, only_b),
            raw_difference=compared.if_of_items(pairs.difference),
            mcnemar_p=compared.if_of_items(mcnemar_exact(only_a, only_b)),
            paired_t_p=compared.if_of_items(paired_t(pairs.difference, pairs.variance_of_many, pairs.degrees)),
        )


@dataclass(frozen=True, slots=True)
class Ranking:
    """Models in order, the places that each may have, and groups of those that cannot be told apart.

    All of it follows from the same tests of all pairs, adjusted for their number (`DifferenceTests.p_holm`): one model
    is clearly better than another if that is below ``1 - level``. If differences are known exactly, so are places.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    targets : tuple of n_targets names
    score : (n_models, n_targets)
        Scores that the ranking goes by.
    rank_low : (n_models, n_targets)
        Best place that a model may have: 1 and one for each model that is clearly better.
    rank_high : (n_models, n_targets)
        Worst place: the number of models less those that are clearly worse.
    group : (n_models, n_targets)
        From 1: models that as many others are clearly better than, the best ones first. Of those in group 1 none is
        clearly better than another.
    behind, behind_low, behind_high : (n_models, n_targets)
        Score of the first model less that of each, with the interval adjusted for all pairs; it contains 0 just where
        the two cannot be told apart. NaN of the first model itself.
    """

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    score: FloatArray
    rank_low: IntArray
    rank_high: IntArray
    group: IntArray
    behind: FloatArray
    behind_low: FloatArray
    behind_high: FloatArray

    @classmethod
    def of(
        cls,
        model_ids: Sequence[str],
        targets: Sequence[str],
        score: FloatArray,  # (n_models, n_targets): NaN comes last
        difference: FloatArray,  # (n_pairs, n_targets)
        tests: DifferenceTests,
        *,
        level: float,
    ) -> Self:
        """Count for each model which others are clearly better, and clearly worse."""
        n_models, is_exact = score.shape[0], np.isnan(tests.p_holm)
        is_clear = np.where(is_exact, np.abs(difference) > SAME, tests.p_holm < 1.0 - level)
        first, second = model_pairs(n_models)
        better, worse = (np.zeros(score.shape, dtype=np.int64) for _ in range(2))
        behind = np.full((3, *score.shape), np.nan)
        for t in range(score.shape[1]):
            of_b = is_clear[:, t] & (difference[:, t] > 0.0)
            of_a = is_clear[:, t] & (difference[:, t] < 0.0)
            for winners, losers in ((second[of_b], first[of_b]), (first[of_a], second[of_a])):
                better[:, t] += np.bincount(losers, minlength=n_models)
                worse[:, t] += np.bincount(winners, minlength=n_models)
            best = int(np.argsort(-score[:, t], kind="stable")[0])
            known = np.stack([difference[:, t], tests.joint_low[:, t], tests.joint_high[:, t]])
            behind[:, first[second == best], t] = known[:, second == best]
            behind[:, second[first == best], t] = 0.0 - known[[0, 2, 1]][:, first == best]
        group = np.column_stack([np.unique(column, return_inverse=True)[1] + 1 for column in better.T])
        return cls(tuple(model_ids), tuple(targets), score, 1 + better, n_models - worse, group, *behind)

    def rows(self) -> list[dict[str, Any]]:
        """One record for each target and model, best first."""
        n_models, n_targets = self.score.shape
        model = np.argsort(-self.score, axis=0, kind="stable").T.ravel()
        t = np.repeat(np.arange(n_targets), n_models)
        group, sizes = self.group[model, t], [np.bincount(column) for column in self.group.T]
        columns = {
            "target": [self.targets[target] for target in t],
            "rank": np.tile(np.arange(1, n_models + 1), n_targets),
            "rank_low": self.rank_low[model, t],
            "rank_high": self.rank_high[model, t],
            "group": group,
            "n_in_group": [sizes[target][number] for target, number in zip(t, group, strict=True)],
            "model_id": [self.model_ids[row] for row in model],
            "score": self.score[model, t],
            "behind_best": self.behind[model, t],
            "behind_lower": self.behind_low[model, t],
            "behind_upper": self.behind_high[model, t],
        }
        return pl.DataFrame(columns).to_dicts()


@dataclass(frozen=True, slots=True)
class LostByModel:
    """Answers that models lost, and what differences are if they were wrong.

    Attributes
    ----------
    errors : {'missing', 'wrong', 'bounds'}
        What they count as.
    n : (n_models,)
    kinds : tuple of n_models str
        Counts by kind, in words.
    if_wrong : (n_pairs, n_targets)
        Differences with all of them as wrong answers.
    """

    errors: Errors
    n: IntArray
    kinds: tuple[str, ...]
    if_wrong: FloatArray


@dataclass(frozen=True, slots=True)
class Found:
    """What answers say of all pairs of models, before intervals and tests."""

    targets: tuple[str, ...]
    evidence: Evidence
    pairs: ModelPairs
    score: FloatArray  # (n_models, n_targets): For the ranking
    estimand: DifferenceEstimand
    method: str
    interval_kind: str
    typicality: Typicality
    bank_id: str = ""
    target_id: str = ""
    last: str = OVERALL
    remarks: tuple[str, ...] = ()


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
    ranking : Ranking
    spec : ComparisonSpec
        With the level of the intervals, the power, and what the differences are of (`estimand`).
    method : str
        The method taken, also if 'auto' was asked for.
    interval_kind : str
        'calibrated': on pairs of past models; 'classical': the standard error of a random sample.
    bank_id, target_id : str
        '' without a bank.
    typicality : Typicality
        How typical each model's answers are of the past models; unknown (NaN) for raw differences, and where the
        bank has too few models.
    last : str
        Name of the score above those of scenarios: 'overall', or a headline score.
    remarks : tuple of str
        What one must know of all differences.
    lost : LostByModel, optional
        Answers that the models lost; None if none were.
    """

    schema = "compare"
    header = (
        *("estimand", "method", "interval=interval_kind", "bank=bank_id", "target_id", "level", "sentence", "notes"),
    )
    main_columns = (
        *("model_a", "model_b", "target", "difference", "low", "high", "level", "probability_b_better", "p_holm"),
        "n_shared_items",
    )

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    difference: Scores
    tests: DifferenceTests
    pairs: ModelPairs
    ranking: Ranking
    spec: ComparisonSpec
    method: str
    interval_kind: str
    bank_id: str
    target_id: str
    typicality: Typicality
    last: str = OVERALL
    remarks: tuple[str, ...] = ()
    lost: LostByModel | None = None

    @property
    def flagged_models(self) -> tuple[str, ...]:
        """Models that answered unlike the past models (`Typicality`): intervals with them deserve care."""
        return tuple(self.model_ids[row] for row in np.flatnonzero(self.typicality.is_flagged).tolist())

    @property
    def is_exact(self) -> bool:
        """Whether all models answered every item, and the difference of just these runs is meant."""
        return self.estimand == RUN and bool(np.all(self.difference.standard_error == 0.0))

    @property
    def estimand(self) -> str:
        """What the differences are of."""
        return self.spec.estimand or RUN

    @property
    def level(self) -> float:
        """Level of the intervals."""
        return self.spec.level

    @property
    def sentence(self) -> str:
        """Which of two models is better, as far as the interval of one score tells; empty for more."""
        if self.difference.value.size != 1:
            return ""
        (row,) = self.rows()
        one, other, target = (visible(row[name]) for name in ("model_a", "model_b", "target"))
        points, low, high = (100.0 * row[name] for name in ("difference", "low", "high"))
        if math.isnan(points + low + high):
            return f"{other} and {one}: the difference of their {target} scores is not known"
        is_exact, level = low == high, f"{100 * self.level:g} %"
        digits, own = decimals_of((row["low"], row["high"])), decimals_of([row["difference"]])
        interval = "exactly, in this run" if is_exact else f"{level} interval {low:+.{digits}f} to {high:+.{digits}f}"
        if low <= 0.0 <= high:
            no = "No difference" if is_exact else "No sure difference"
            return f"{no}: {other} less {one} is {points:+.{own}f} points of the {target} score ({interval})"
        way = "better" if points > 0.0 else "worse"
        return f"{other} is {abs(points):.{own}f} points {way} than {one}, {target} ({interval})"

    @property
    def is_clear(self) -> BoolArray:
        """Whether two models can be told apart, after the adjustment for all pairs, (n_pairs, n_targets)."""
        return self.tests.p_holm < 1.0 - self.spec.level

    @property
    def n_pairs(self) -> int:
        """Number of pairs of models."""
        return int(self.pairs.first.shape[0])

    @property
    def reference(self) -> ModelPairs:
        """Textbook tests of the raw shared items."""
        return self.pairs

    @property
    def table(self) -> pl.DataFrame:
        """One row for each pair and target, as the command line prints them."""
        k, t = (place.ravel() for place in np.indices(self.difference.value.shape))
        first, second = self.pairs.first[k], self.pairs.second[k]
        difference, tests, lost = self.difference, self.tests, self.lost
        n_lost = np.zeros(len(self.model_ids), dtype=np.int64) if lost is None else lost.n
        notes, flags = self._notes(), self._flags()
        said = [
            (notes[pair][target], flags[pair], *self._on_lost(), *self.remarks)
            for pair, target in zip(k, t, strict=True)
        ]
        columns: dict[str, Any] = {
            "model_a": [self.model_ids[row] for row in first],
            "model_b": [self.model_ids[row] for row in second],
            "target": [self.targets[target] for target in t],
            "difference": difference.value[k, t],
            "low": difference.low[k, t],
            "high": difference.high[k, t],
            "probability_b_better": tests.probability_b_better[k, t],
            "standard_error": difference.standard_error[k, t],
        }
        of_tests = ("p_value", "p_holm", "joint_low", "joint_high", "smallest_detectable_difference")
        columns |= {name: getattr(tests, name)[k, t] for name in of_tests}
        columns |= {one.name: getattr(self.pairs, one.name)[k, t] for one in fields(self.pairs)[2:]}
        columns |= {
            "typicality_a": pl.Series(self.typicality.typicality[first], nan_to_null=True),
            "typicality_b": pl.Series(self.typicality.typicality[second], nan_to_null=True),
            **picked(self, "level", "estimand", "method"),
            "interval": self.interval_kind,
            "bank": self.bank_id,
            "target_id": self.target_id,
            "errors": None if lost is None else lost.errors,
            "n_lost_a": n_lost[first],
            "n_lost_b": n_lost[second],
            "if_lost_are_wrong": None if lost is None else pl.Series(lost.if_wrong[k, t], nan_to_null=True),
            "note": ["; ".join(filter(None, parts)) for parts in said],
        }
        return pl.DataFrame(columns)

    def main_rows(self) -> list[dict[str, Any]]:
        """Return the records that people are shown: intervals are adjusted for the number of pairs, as `p_holm` is."""
        return [row | {"low": row["joint_low"], "high": row["joint_high"]} for row in self.rows()]

    def ranking_rows(self) -> list[dict[str, Any]]:
        """One record for each target and model, best first, as the command line prints them."""
        facts = {"level": self.spec.level, "estimand": self.estimand, "note": "; ".join(self.notes)}
        n_lost = {} if self.lost is None else dict(zip(self.model_ids, self.lost.n.tolist(), strict=True))
        return [{**row, "n_lost": n_lost.get(row["model_id"], 0), **facts} for row in self.ranking.rows()]

    @property
    def notes(self) -> tuple[str, ...]:
        """What one must know of the differences, each remark once."""
        texts = dict.fromkeys(text for texts in self._notes() for text in texts if text)
        if len(texts) > 1 and not self.bank_id:
            shared = self.pairs.n_shared_items
            said = f"each pair is compared on the items that both answered, {shared.min()} to {shared.max()}"
            texts = {Fact(said): None}
        return (*self._on_lost(), *texts, *self.remarks)

    def _on_lost(self) -> tuple[str, ...]:
        """Say which models lost answers, what these count as, and what else they do."""
        lost = self.lost
        if lost is None:
            return ()
        order = [row for row in np.argsort(-lost.n, kind="stable").tolist() if lost.n[row]]
        who = first_few(
            [f"{self.model_ids[row]} lost {plural(lost.n[row], 'answer')} ({lost.kinds[row]})" for row in order]
        )
        counted = {
            "missing": "They count as missing",
            "wrong": "They count as wrong",
            "bounds": "The intervals hold whichever of them were right",
        }[lost.errors]
        if lost.errors == "missing" and lost.if_wrong.size == 1:
            counted += f"; as wrong, the difference is {100.0 * lost.if_wrong[0, 0]:+.1f} points"
        elif lost.errors == "missing":
            counted += "; the field if_lost_are_wrong has the differences with them as wrong"
        more = remedy("errors='wrong' or 'bounds'", "--errors wrong or bounds")
        return (f"{who}. {counted}{f' ({more})' if lost.errors == 'missing' else ''}",)

    def _flags(self) -> list[str]:
        """Return what each pair's typicality says of its interval, '' where nothing."""
        flagged = self.typicality.is_flagged
        which = flagged[self.pairs.first] + 2 * flagged[self.pairs.second]
        names = ("", "model_a", "model_b", "both models")
        return [f"{names[k]} answered unlike most past models: take the interval with care" if k else "" for k in which]

    def _notes(self) -> list[list[str]]:
        """Return the remark on the items of each pair and target, '' where there is none."""
        pairs = self.pairs
        shared, n_a, n_b = pairs.n_shared_items, pairs.n_items_a, pairs.n_items_b
        texts = [
            "",
            "the models answered different items: what they do not share counts as independent, the interval is "
            "wider than on the same items",
            "no shared items for this target: the errors count as independent",
            "not enough responses for this target",
        ]
        code = np.where(shared == 0, 2, ((shared < n_a) | (shared < n_b)).astype(np.int64))
        code[np.isnan(self.difference.value)] = 3
        result = [[texts[k] for k in row] for row in code.tolist()]
        if not self.bank_id:
            for k, t in zip(*(axis.tolist() for axis in np.nonzero(code == 1)), strict=True):
                answered = " and ".join(map(str, dict.fromkeys((int(n_a[k, t]), int(n_b[k, t])))))
                result[k][t] = Fact(
                    f"compared on {plural(int(shared[k, t]), 'item')} that both answered, of {answered}"
                )
        return result
