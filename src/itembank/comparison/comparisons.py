"""`Comparison`: differences of models with all that is needed to read them rightly."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from itembank.numerics.arrays import FloatArray, IntArray
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """Differences of n_pairs pairs of models on n_targets targets, all signed b - a.

    Attributes
    ----------
    model_ids : tuple of n_models ids
    targets : tuple of n_targets names
    first, second : (n_pairs,)
        Which model is a, which is b; every pair stands once, a before b in `model_ids`.
    difference : (n_pairs, n_targets)
        Score of b less score of a, over the full benchmark.
    standard_error : (n_pairs, n_targets)
    low, high : (n_pairs, n_targets)
        Interval of the given level, cut to [-1, 1].
    probability_b_better : (n_pairs, n_targets)
        That b scores higher than a on the full benchmark, were every difference as likely beforehand.
    p_value, p_holm : (n_pairs, n_targets)
        Two-sided, of no difference on the full benchmark; as it is, and adjusted for all pairs of the target.
    smallest_detectable_difference : (n_pairs, n_targets)
        True difference that these items show as significant at `level` with probability `power`.
    n_shared_items, n_items_a, n_items_b : (n_pairs, n_targets)
    only_a_right, only_b_right : (n_pairs, n_targets)
        Discordant items; NaN when responses are not all 0 or 1.
    raw_difference : (n_pairs, n_targets)
        Weighted mean difference over the shared items; NaN where a scenario has none.
    mcnemar_p, paired_t_p, bootstrap_low, bootstrap_high : (n_pairs, n_targets)
        What textbook methods say of the raw shared items, for reference; they take items as a random sample of
        infinitely many. McNemar's needs responses of 0 and 1.
    score : (n_models, n_targets)
        Scores that the ranking goes by.
    group : (n_models, n_targets)
        Tied group from 1, see `ranking`.
    level, power : float
    method : str
        The method taken, also where 'auto' was asked for.
    interval_kind : str
        'calibrated': on pairs of calibration models; 'classical': the standard error of a random sample.
    bank_id : str
    """

    model_ids: tuple[str, ...]
    targets: tuple[str, ...]
    first: IntArray
    second: IntArray
    difference: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    probability_b_better: FloatArray
    p_value: FloatArray
    p_holm: FloatArray
    smallest_detectable_difference: FloatArray
    n_shared_items: IntArray
    n_items_a: IntArray
    n_items_b: IntArray
    only_a_right: FloatArray
    only_b_right: FloatArray
    raw_difference: FloatArray
    mcnemar_p: FloatArray
    paired_t_p: FloatArray
    bootstrap_low: FloatArray
    bootstrap_high: FloatArray
    score: FloatArray
    group: IntArray
    level: float
    power: float
    method: str
    interval_kind: str
    bank_id: str

    @property
    def n_pairs(self) -> int:
        """Number of pairs of models."""
        return int(self.first.shape[0])

    def rows(self) -> list[dict[str, Any]]:
        """One record for each pair and target, as the command line prints them."""
        names = (
            "difference",
            "low",
            "high",
            "probability_b_better",
            "standard_error",
            "p_value",
            "p_holm",
            "smallest_detectable_difference",
            "n_shared_items",
            "n_items_a",
            "n_items_b",
            "only_a_right",
            "only_b_right",
            "raw_difference",
            "mcnemar_p",
            "paired_t_p",
            "bootstrap_low",
            "bootstrap_high",
        )
        columns = [getattr(self, name).tolist() for name in names]
        notes = self._notes()
        facts = {"level": self.level, "method": self.method, "interval": self.interval_kind, "bank": self.bank_id}
        first, second = self.first.tolist(), self.second.tolist()
        return [
            {
                "model_a": self.model_ids[first[k]],
                "model_b": self.model_ids[second[k]],
                "target": target,
                **{name: column[k][t] for name, column in zip(names, columns, strict=True)},
                **facts,
                "note": notes[k][t],
            }
            for k in range(self.n_pairs)
            for t, target in enumerate(self.targets)
        ]

    def ranking(self) -> list[dict[str, Any]]:
        """One record for each target and model, best first, with tied groups.

        The best model begins group 1; going down, the first model whose difference to the best of the group is
        significant after Holm's adjustment begins the next group. Within a group nobody differs significantly from
        its best; models of neighbouring groups may still be tied with each other.
        """
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

    def _notes(self) -> list[list[str]]:
        """Say of each pair and target what a reader must know, '' where nothing."""
        answers_differ = (self.n_shared_items < self.n_items_a) | (self.n_shared_items < self.n_items_b)
        texts = np.array(
            [
                "",
                "the models answered different items: what they do not share counts as independent, the interval is "
                "wider than on the same items",
                "no shared items for this target: the errors count as independent",
                "not enough responses for this target",
            ]
        )
        code = np.where(self.n_shared_items == 0, 2, answers_differ.astype(np.int64))
        result: list[list[str]] = texts[np.where(np.isnan(self.difference), 3, code)].tolist()
        return result
