"""What chance does to a gate: runs of the same set-up, the noise floor of a benchmark, items against repeats."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from itembank.estimation.estimator_specs import QUESTIONS, RUN
from itembank.gating.gate import GatePair, look_of
from itembank.gating.gate_spec import GateSpec
from itembank.gating.results import Gate, points
from itembank.numerics.intervals import normal_quantile
from itembank.numerics.paired import PairedLook, flips
from itembank.tabular import Tabular, picked


@dataclass(frozen=True, slots=True, repr=False)
class SelfTest(Tabular):
    """What two runs of the same set-up say of the gate that it can hold.

    The interval of the difference contains 0 unless the two are no runs of the same set-up. `margin_held` is the
    smallest margin at which a candidate like the baseline passes with all these items, but for the probability of a
    false alarm.
    """

    schema = "gate-self-test"

    n_items: int
    fell: int  # Items on which the second run was worse
    rose: int  # Items on which it was better
    difference: float
    low: float
    high: float
    data_variance: float  # Of one answer, between items
    trial_variance: float  # Of one answer, between runs at the same item
    margin_held: float
    spec: GateSpec

    @property
    def standard_error(self) -> float:
        """Of the difference of two runs of the set-up on these items."""
        return math.sqrt(2.0 * self.trial_variance / self.n_items)

    @property
    def sentence(self) -> str:
        """What follows, in words."""
        share = 100.0 * (self.fell + self.rose) / self.n_items
        same = (
            "" if self.low <= 0.0 <= self.high else " The two differ by more than chance: they are not the same set-up."
        )
        return (
            f"{share:.1f} % of {self.n_items} answers change from run to run, and the score by ±"
            f"{points(normal_quantile(0.975) * self.standard_error)}. This set-up can hold a margin of "
            f"{points(self.margin_held)}.{same}"
        )

    def floor(self) -> list[dict[str, Any]]:
        """Return the noise floor: what chance does to a score and to a difference, as standard errors from 0 to 1."""
        n = self.n_items
        data, trial = (math.sqrt(value / n) for value in (self.data_variance, self.trial_variance))
        both = math.hypot(data, trial)
        root = math.sqrt(2.0)
        return [
            {"noise": "data: other items", "score": data, "difference": root * data},
            {"noise": "trial: another run", "score": trial, "difference": root * trial},
            {"noise": "both", "score": both, "difference": root * both},
        ]

    @property
    def table(self) -> pl.DataFrame:
        """One row a margin: how often a candidate that is the same fails, passes, and drops below a threshold."""
        spec, error = self.spec, max(self.standard_error, 1e-12)
        alarm, miss = (normal_quantile(1.0 - rate) for rate in (spec.false_alarm, spec.miss))
        margin = np.array(sorted({0.005, 0.01, 0.02, 0.03, 0.05, 0.1, spec.margin}))
        fails = ndtr(-np.maximum(margin, margin * spec.healthy / spec.margin + alarm * error) / error)
        passes = ndtr(margin / error - miss)
        columns = {"margin": margin, "failed": fails, "passed": passes}
        columns |= {"undecided": np.maximum(1.0 - passes - fails, 0.0), "below_threshold": ndtr(-margin / error)}
        return pl.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "schema_version": "itembank.gate-self-test/1",
            "sentence": self.sentence,
            "n_items": self.n_items,
            "flips": {"right_to_wrong": self.fell, "wrong_to_right": self.rose},
            **picked(self, "difference", "low", "high", "margin_held"),
            "noise_floor": self.floor(),
            "margins": self.rows(),
        }


def self_test(pair: GatePair, spec: GateSpec) -> SelfTest:
    """Learn from two runs of the same set-up how much chance there is in a gate of it.

    Of two attempts at each item the variance of one is ``(y' - y)^2 / 2``; one item more that changed is added, so that
    runs without a single change are not taken for runs without chance.
    """
    shared = ~np.isnan(pair.candidate)
    one, other = pair.baseline[shared], pair.candidate[shared]
    d, n = other - one, int(shared.sum())
    trial = float((d @ d + 1.0) / (2.0 * (n + 1.0)))
    total = float(np.var(np.concatenate([one, other]), ddof=1))
    error = math.sqrt(2.0 * trial / n)
    reach = normal_quantile(0.5 + spec.level / 2.0) * error
    fell, rose = flips(one, other)
    held = (normal_quantile(1.0 - spec.miss) + normal_quantile(1.0 - spec.false_alarm)) * error
    mean = float(d.mean())
    return SelfTest(
        n, fell, rose, mean, mean - reach, mean + reach, max(total - trial, 0.0), trial,
        math.ceil(1000.0 * held) / 1000.0, spec,
    )  # fmt: skip


def more_items_or_repeats(pair: GatePair, found: Gate) -> list[dict[str, Any]]:
    """Return what twice the answers bring to a verdict: as more items, or as more repeats; none without repeats.

    The variance of a difference d over n of N items has a part of chance, ``W / n``, that falls with the number of
    attempts; W is ``v_b / k_b + v_c / k_c`` on average. Of these runs alone it is ``W (1/n - 1/N)``: what is known of
    all items is exact. Of questions like these there are always more.
    """
    chance, trials = pair.chance, pair.matrix.n_trials
    if trials is None or chance is None:
        return []
    spec, estimand = found.spec, found.estimand
    n, n_total = pair.n_answered, pair.n_baseline
    attempts_now = float(trials[1, ~np.isnan(pair.candidate)].mean())
    now = pair.look(estimand, cluster=spec.cluster)
    boundary = normal_quantile(0.5 + spec.level / 2.0)

    def half_width(one: PairedLook) -> float:
        look = look_of(one, n, [boundary] * 3)
        return 0.5 * (look.high - look.low)

    shown = half_width(now)
    by_shown = 0.5 * (found.high - found.low) / shown if shown > 0.0 else 0.0  # a bank knows more, lost answers less

    def record(what: str, items: int, times: float, one: PairedLook) -> dict[str, Any]:
        attempts = round(attempts_now * times, 2)
        return {"choice": what, "n_items": items, "repeats": attempts, "half_width": by_shown * half_width(one)}

    rows = [record("as it is", n, 1.0, now)]
    if now.is_exact:
        return rows
    if now.ahead is not None and (n < n_total or estimand == QUESTIONS):
        more = min(2 * n, n_total) if n < n_total else 2 * n
        rows.append(record("more items", more, 1.0, now.ahead(more)))
    saved = 0.5 * chance * (1.0 / n - (1.0 / n_total if estimand == RUN else 0.0))
    return [*rows, record("more repeats", n, 2.0, replace(now, variance=max(now.variance - saved, 0.0)))]


def advice(rows: list[dict[str, Any]]) -> str:
    """Say which of the choices tells more."""
    now, *others = rows
    if not others:
        return f"Neither more items nor more repeats tell more: the difference on all {now['n_items']} items is known."
    best = min(others, key=lambda row: row["half_width"])
    return (
        f"{best['choice'].capitalize()} tell more: {best['n_items']} items with {best['repeats']:g} attempts each "
        f"bring the half-width from {points(now['half_width'])} to {points(best['half_width'])}."
    )
