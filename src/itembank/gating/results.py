"""`Gate`: a verdict on a candidate, with what it rests on."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

import polars as pl

from itembank.errors import remedy, visible
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, RUN
from itembank.gating.gate_spec import GateSpec
from itembank.responses.error_kinds import Errors
from itembank.tables import all_of, amount, plural
from itembank.tabular import Tabular, picked

Verdict = Literal["pass", "fail", "undecided"]
EXIT_CODES: Final[Mapping[str, int]] = {"pass": 0, "fail": 1, "undecided": 3}
SCHEMA = "itembank.gate/1"
TIE = 1e-9
"""A difference this near to a limit is at the limit: sums of weights 1/n end at -0.04999999999999999."""
LOST_IN_WORDS: Final[Mapping[str, str]] = {
    "missing": "without them",
    "wrong": "with them as wrong",
    "worst": "in the worst case",
    "best": "in the best case",
}


@dataclass(frozen=True, slots=True)
class Look:
    """What was known when so many items were answered; differences are candidate less baseline, from -1 to 1.

    `low` and `high` are the interval at the spec's level. The verdict rests on one-sided bounds, lower and upper:
    `by_miss` err with the probability of a miss each, `by_alarm` with that of a false alarm. All hold over all looks of
    the gate.
    """

    n_items: int
    difference: float
    low: float
    high: float
    by_miss: tuple[float, float]
    by_alarm: tuple[float, float]
    is_exact: bool = False  # Whether all items are answered and their difference is what is asked for


@dataclass(frozen=True, slots=True)
class ScenarioChange:
    """What changed in one scenario, over the items that both answered."""

    scenario: str
    n_items: int
    baseline: float
    candidate: float
    right_to_wrong: int
    wrong_to_right: int

    @property
    def change(self) -> float:
        """Score of the candidate less that of the baseline."""
        return self.candidate - self.baseline


@dataclass(frozen=True, slots=True)
class FlippedItem:
    """An item that the candidate answered differently than the baseline; responses are from 0 to 1."""

    item_id: str
    scenario: str
    baseline: float
    candidate: float


class LostBySide(NamedTuple):
    """How many answers one side lost, of those it was asked for, with counts by kind in words."""

    n: int
    n_asked: int
    kinds: str

    @property
    def share(self) -> float:
        """Part of its answers that it lost."""
        return self.n / max(self.n_asked, 1)


@dataclass(frozen=True, slots=True)
class Lost:
    """Answers that the baseline and the candidate lost, and what they do to the verdict.

    Attributes
    ----------
    errors : {'missing', 'wrong', 'bounds'}
        What they count as.
    baseline, candidate : LostBySide
        Of the baseline's items.
    ways : mapping of str to (difference, verdict)
        By what they may count as: 'missing', 'wrong', and for 'bounds' the 'worst' and the 'best' case.
    reason : {'', 'decide', 'too many'}
        Why a candidate is undecided for them: the verdict depends on them, or they are more than `GateSpec.max_lost`.
    """

    errors: Errors
    baseline: LostBySide
    candidate: LostBySide
    ways: Mapping[str, tuple[float, Verdict]]
    reason: str = ""

    @property
    def share(self) -> float:
        """The larger part of its answers that either side lost."""
        return max(self.baseline.share, self.candidate.share)

    @property
    def in_words(self) -> str:
        """How many were lost, and the difference by what they count as, what is counted first."""
        who = " and ".join(
            f"the {name} lost {side.n} of {plural(side.n_asked, 'answer')} ({side.kinds})"
            for name, side in (("candidate", self.candidate), ("baseline", self.baseline))
            if side.n
        )
        shown = [way for way in self.ways if self.errors != "bounds" or way in {"worst", "best"}]
        return f"{who}. The difference is {', '.join(map(self.way_in_words, shown))}"

    def way_in_words(self, way: str) -> str:
        """Return the difference and the verdict if lost answers count so: '-15.0 with them as wrong (FAIL)'."""
        difference, verdict = self.ways[way]
        return f"{signed(difference)} {LOST_IN_WORDS[way]} ({verdict.upper()})"


@dataclass(frozen=True, slots=True, repr=False)
class Gate(Tabular):
    """Whether a candidate is as good as a baseline, to within a margin.

    Attributes
    ----------
    verdict : {'pass', 'fail', 'undecided'}
        'pass': the drop is proved to be less than the margin. 'fail': the drop is proved to be more than the tolerance,
        and is the margin or more by the best estimate.
    looks : tuple of Look
        In the order they were taken; the last one gave the verdict.
    baseline_id, candidate_id : str
    baseline_score, candidate_score : float
        The baseline's score, and that plus the difference. Of questions like these the mean over the items that both
        answered; with a bank by its weights; else the mean of all answers of the baseline.
    passed : bool
        Whether the verdict is 'pass'.
    n_items, n_total : int
        Items the candidate answered; items that the difference is about.
    right_to_wrong, wrong_to_right : int
        Items whose response fell, and rose.
    method : {'paired', 'probabilities', 'bank', 'compare'}
        'paired': from the answers to the same items alone. 'probabilities': with the options' probabilities as a
        covariate. 'bank': estimates from chosen items, with past models' errors. 'compare': as `compare`.
    estimand : {'run', 'repeated', 'questions'}
    items_to_decide : int or None
        How many more items would decide if the difference is as estimated, whether or not there are so many; None if it
        is decided or none would.
    cost_to_decide : mapping of unit to amount
    scenarios : tuple of ScenarioChange
    flipped : tuple of FlippedItem
        The largest change first, equal ones in the order of the items.
    next_items : tuple of item ids
        To be run next, of a gate in stages that is undecided.
    spec : GateSpec
    notes : tuple of str
    bank_id : str
    lost : Lost, optional
        Answers that either side lost; None if none were.
    is_chosen : bool
        Whether it is undecided because the items are no random sample of the baseline's; `notes` say by which signs.
    """

    schema = "gate"
    main_columns = (
        *("difference", "low", "high", "level", "margin", "baseline_score", "candidate_score", "n_items", "n_total"),
        *("right_to_wrong", "wrong_to_right"),
    )

    verdict: Verdict
    looks: tuple[Look, ...]
    baseline_id: str
    candidate_id: str
    baseline_score: float
    n_items: int
    n_total: int
    right_to_wrong: int
    wrong_to_right: int
    method: str
    estimand: str
    items_to_decide: int | None
    cost_to_decide: Mapping[str, float]
    scenarios: tuple[ScenarioChange, ...]
    flipped: tuple[FlippedItem, ...]
    next_items: tuple[str, ...]
    spec: GateSpec
    notes: tuple[str, ...] = ()
    bank_id: str = ""
    lost: Lost | None = None
    is_chosen: bool = False

    @property
    def last(self) -> Look:
        """The look that gave the verdict."""
        return self.looks[-1]

    @property
    def passed(self) -> bool:
        """Whether the verdict is 'pass'; neither 'fail' nor 'undecided' is."""
        return self.verdict == "pass"

    def __bool__(self) -> bool:
        """Refuse to be true or false: there are three verdicts, and any object is true."""
        raise TypeError(
            f"a gate is neither true nor false, its verdict is {self.verdict!r}: ask gate.passed, or gate.verdict."
        )

    @property
    def candidate_score(self) -> float:
        """The baseline's score and the difference."""
        return self.baseline_score + self.difference

    @property
    def difference(self) -> float:
        """Score of the candidate less that of the baseline."""
        return self.last.difference

    @property
    def low(self) -> float:
        """Lower end of the interval of the difference."""
        return self.last.low

    @property
    def high(self) -> float:
        """Upper end."""
        return self.last.high

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 3 for undecided."""
        return EXIT_CODES[self.verdict]

    @property
    def sentence(self) -> str:
        """The verdict in a sentence or two, for people."""
        spec, look = self.spec, self.last
        candidate, baseline = visible(self.candidate_id), visible(self.baseline_id)
        margin, size = points(spec.margin), points(abs(look.difference))
        scores = f"{100 * self.baseline_score:.1f} -> {100 * self.candidate_score:z.1f}"  # none is -0.0
        interval = f"on {all_of(self.n_total, 'item')}" if look.is_exact else self._interval
        if self.verdict == "pass":
            same = self.right_to_wrong + self.wrong_to_right == 0 and not (self.lost and self.lost.candidate.n)
            told = f" It gave the same answers as {baseline} to {all_of(look.n_items, 'item')}." if same else ""
            bound = "" if look.is_exact else f" (one-sided {100 * (1.0 - spec.miss):g} % bound, margin {margin})"
            two_sided = "" if look.is_exact else "two-sided "
            return (
                f"PASS: {candidate} {self._way}{bound}. Score {scores}, difference {signed(look.difference)}, "
                f"{two_sided}{interval}.{told}"
            )
        if self.verdict == "fail":
            way = "better" if look.difference > 0.0 else "worse"
            return f"FAIL: {candidate} is {way} than {baseline} by {size} ({scores}, {interval})."
        of_runs = remedy("estimand='run'", "--estimand run")
        alone = "" if self.estimand == RUN else f" For the difference of these two runs alone: {of_runs}."
        if self.lost is not None and self.lost.reason:
            more = self._too_many(self.lost)
        elif self.is_chosen:
            drop = abs(look.difference) if spec.both_sides else -look.difference
            then = "pass" if drop < spec.margin - TIE else "fail"
            more = (
                f" It would {then} if these {self.n_items:,} of {self.n_total:,} items were a random sample, and they "
                f"are not. Run the others, or those that itembank gate start draws."
            )
        elif self.next_items:
            more = f" The next {plural(len(self.next_items), 'item', 'are')} to be run."
        elif self.is_all_run:
            more = (
                f" All {self.n_total:,} items were run: only more questions, repeated runs or a wider margin can "
                f"decide.{alone}"
            )
        elif self.items_to_decide is not None:
            costs = " and ".join(f"{amount(cost)} {visible(unit)}" for unit, cost in self.cost_to_decide.items())
            left = self.n_total - self.n_items
            short = f", and only {left} are left.{alone}" if left < self.items_to_decide else "."
            about = plural(self.items_to_decide, "more item")
            more = f" About {about} would decide it{f', for {costs}' if costs else ''}{short}"
        else:
            more = " The difference is too near to the margin for more items to decide it."
        differs = f"{candidate} differs from {baseline} by {signed(look.difference)} points"
        return f"UNDECIDED: {differs} ({scores}, {interval}).{more}"

    def _too_many(self, lost: Lost) -> str:
        """Why lost answers leave a candidate undecided, and what to do."""
        if lost.reason == "too many":
            most = f"{remedy('max_lost', '--max-lost')} {self.spec.max_lost:g}"
            return f" It would pass, but {100 * lost.share:.3g} % of one side's answers were lost, more than {most}."
        sides = {"It": lost.candidate, "The baseline": lost.baseline}
        counts = [f"{who} lost {side.n} of {plural(side.n_asked, 'answer')}" for who, side in sides.items() if side.n]
        said = f" {' and '.join(counts).replace(' The', ' the')}, and they decide: "
        if lost.errors == "bounds":
            return f"{said}{lost.way_in_words('worst')}, {lost.way_in_words('best')}. Run them again."
        count = "Run them again, or count them: " + remedy("errors='wrong'", "--errors wrong")
        return f"{said}{lost.way_in_words('missing')}, {lost.way_in_words('wrong')}. {count}."

    @property
    def _way(self) -> str:
        """What a candidate that passes is; a drop that is proved is said, though it is small enough."""
        spec, (lower, upper) = self.spec, self.last.by_miss
        if self.last.is_exact:
            d = self.difference
            way = "is not worse" if d >= 0.0 and not spec.both_sides else "is worse" if d < 0.0 else "differs"
            within = f" by {points(abs(d))}, less than the margin of {points(spec.margin)}"
            return way if way == "is not worse" else f"{way}{within}"
        most = _rounded(max(-lower, upper) if spec.both_sides else -lower, math.ceil)
        proved = "is worse" if self.last.by_alarm[1] < 0.0 else "is better" if self.last.by_alarm[0] > 0.0 else ""
        if spec.both_sides:
            return f"{proved}, by at most {most}" if proved else f"differs by at most {most}"
        if lower >= 0.0:
            return proved or "is not worse"
        return f"is worse, by at most {most}" if proved == "is worse" else f"is at most {most} worse"

    @property
    def _interval(self) -> str:
        return f"{100 * self.spec.level:g} % interval {signed(self.low)} to {signed(self.high)}"

    @property
    def is_all_run(self) -> bool:
        """Whether the candidate answered every item."""
        return self.n_items >= self.n_total

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What is below the sentence, by name; numbers that are proved are rounded to the safe side."""
        spec, look = self.spec, self.last
        changed = self.right_to_wrong + self.wrong_to_right
        ways = [("worse by less", -look.by_miss[0], math.ceil), ("worse by more", -look.by_alarm[1], math.floor)]
        if spec.both_sides:
            ways.insert(1, ("better by less", look.by_miss[1], math.ceil))
        ways.append(("better by more", look.by_alarm[0], math.floor))
        if look.is_exact or self.is_chosen or (self.lost and self.lost.reason and self.lost.errors == "missing"):
            ways = []  # as items that were not drawn, or lost answers, may be others
        proved = [f"{way} than {_rounded(size, near)}" for way, size, near in ways if size > 0.0]
        return (
            ("Difference", f"{signed(self.difference)} points, {'exactly' if look.is_exact else self._interval}"),
            ("Difference of", f"{ESTIMANDS_IN_WORDS[self.estimand]} (--estimand)"),
            *((("Proved", ", ".join(proved)),) if proved else ()),
            (
                "Answers changed",
                f"{changed} of {look.n_items} ({100 * changed / max(look.n_items, 1):.1f} %): {self.right_to_wrong} "
                f"fell, {self.wrong_to_right} rose",
            ),
            ("Items", f"{self.n_items} of {self.n_total}, margin {points(spec.margin)}, by {self.method}"),
        )

    @property
    def by_change(self) -> tuple[ScenarioChange, ...]:
        """The scenarios, those first that changed the difference most."""
        return tuple(sorted(self.scenarios, key=lambda one: -one.n_items * abs(one.change)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--format json`` prints it; the keys are described in docs/gate.md."""
        spec, lost = self.spec, self.lost
        if_wrong = lost.ways.get("wrong", (None, None)) if lost else (None, None)
        flips = picked(self, "right_to_wrong", "wrong_to_right")
        return {
            "schema_version": SCHEMA,
            **picked(self, "verdict", "sentence", "difference", "low", "high"),
            "level": spec.level,
            "lower_bound": self.last.by_miss[0],
            "upper_bound": self.last.by_alarm[1],
            "margin": spec.margin,
            "tolerance": spec.healthy,
            **picked(spec, "both_sides", "false_alarm", "miss"),
            "baseline": self.baseline_id,
            "candidate": self.candidate_id,
            **picked(self, "baseline_score", "candidate_score", "n_items", "n_total"),
            "is_exact": self.last.is_exact,
            "flips": {**flips, "share": sum(flips.values()) / max(self.last.n_items, 1)},
            **picked(self, "method", "estimand"),
            "bank": self.bank_id,
            "errors": lost.errors if lost else None,
            "n_lost_baseline": lost.baseline.n if lost else 0,
            "n_lost_candidate": lost.candidate.n if lost else 0,
            "if_lost_are_wrong": if_wrong[0],
            "verdict_if_lost_are_wrong": if_wrong[1],
            "items_to_decide": self.items_to_decide,
            "cost_to_decide": dict(self.cost_to_decide),
            "next_items": list(self.next_items),
            "looks": [picked(one, "n_items", "difference", "low", "high") for one in self.looks],
            "scenarios": [asdict(one) for one in self.scenarios],
            "notes": list(self.notes),
            "exit_code": self.exit_code,
        }

    @property
    def table(self) -> pl.DataFrame:
        """One row: the verdict and what it rests on."""
        flat = {k: v for k, v in self.to_dict().items() if not isinstance(v, list | dict)}
        flips = picked(self, "right_to_wrong", "wrong_to_right")
        return pl.DataFrame([flat | flips]).drop("schema_version", "sentence")


def points(value: float) -> str:
    """Say a size from 0 to 1 in points."""
    text = f"{100.0 * value:z.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def _rounded(size: float, near: Callable[[float], float]) -> str:
    """Say a size that is proved in points, rounded up or down to a tenth: to the safe side."""
    return points(near(round(1e3 * size, 6)) / 1e3)


def signed(value: float) -> str:
    """Say a difference in points, without the word."""
    return "unknown" if math.isnan(value) else f"{100.0 * value:+.1f}"
