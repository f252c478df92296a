"""A bank's estimates beside the scores of models that ran everything: the verb `check_bank` and its result."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtrc

from itembank.bank.arguments import GivenBank, GivenResponses, GivenSelection, as_bank, as_new_responses, as_selection
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction, check_whole
from itembank.errors import DataError, shown
from itembank.estimation.asked import Asked, known_items
from itembank.estimation.estimate import estimate
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import choose_method, try_methods
from itembank.estimation.observations import bank_positions
from itembank.estimation.predictions import scenario_sums
from itembank.numerics.arrays import FloatArray, IntArray, mean_where_known
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.agreement import only_items
from itembank.responses.model_features import model_dates
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True)
class CheckedScore:
    """One score of one model, estimated from some items.

    Attributes
    ----------
    model_id, target : str
    n_chosen : int
        Items that were chosen in all.
    n_items, n_total : int
        Items of the target that were used, of how many.
    truth : float
        From all items; NaN where the model did not run all of them.
    estimate, low, high : float
        From the chosen items alone, with the interval.
    expected_error : float
        Cross-validated mean absolute error of past models, with items chosen in the same way; of drawn items that
        of such a draw. NaN where it is not known.
    is_drawn : bool
        Whether the interval rests on how the items were drawn.
    """

    model_id: str
    target: str
    n_chosen: int
    n_items: int
    n_total: int
    truth: float
    estimate: float
    low: float
    high: float
    expected_error: float
    is_drawn: bool = False

    @property
    def error(self) -> float:
        """Estimate less truth."""
        return self.estimate - self.truth

    @property
    def is_known(self) -> bool:
        """Whether there are a truth and an interval to compare."""
        return not math.isnan(self.truth + self.low + self.high)

    @property
    def is_covered(self) -> bool:
        """Whether the interval covers the truth."""
        return self.low - 1e-9 <= self.truth <= self.high + 1e-9

    @property
    def verdict(self) -> str:
        """What to make of it, in a word."""
        return "unknown" if not self.is_known else "within" if self.is_covered else "outside"

    def in_words(self, level: float) -> str:
        """Say it in a sentence, in points."""
        side = self.high - self.estimate if self.truth > self.estimate else self.estimate - self.low
        whose = "errors of such draws" if self.is_drawn else "cross-validated errors of past models"
        own = "" if math.isnan(self.expected_error) else f"; {whose} average {100.0 * self.expected_error:.1f}"
        bank_says = f"what the bank expects ({100.0 * side:.1f} at {100.0 * level:g} %{own})"
        start = f"{self.model_id}, {self.n_chosen} items: the error of {100.0 * abs(self.error):.1f} points is"
        if self.is_covered:
            return f"{start} within {bank_says}."
        if self.is_drawn:
            often = f"{100.0 * (1.0 - level):g} of 100"
            return f"{start} outside {bank_says}. By chance that is so for {often} models, often for several at a draw."
        return (
            f"{start} outside {bank_says}. The bank does not suit this model: calibrate it with models like this one, "
            "or take more items."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record; scores and errors run from 0 to 1."""
        names = ("model_id", "target", "n_chosen", "n_items", "n_total", "truth", "estimate", "error", "expected_error")
        record = {name: getattr(self, name) for name in (*names, "low", "high")}
        return {**record, "covered": self.is_covered if self.is_known else None, "verdict": self.verdict}


@dataclass(frozen=True, slots=True, repr=False)
class BankCheck(Tabular):
    """How good a bank's estimates are for models that ran everything.

    Attributes
    ----------
    bank_id : str
    level : float
        Of the intervals.
    scores : tuple of CheckedScore
        By number of items, model and target.
    hints : tuple of str
        What about the models may make them unlike past models.
    """

    schema = "check"

    bank_id: str
    level: float
    scores: tuple[CheckedScore, ...]
    hints: tuple[str, ...]

    @property
    def verdicts(self) -> tuple[str, ...]:
        """A sentence on the overall score of each model and number of items."""
        return tuple(one.in_words(self.level) for one in self._overall())

    @property
    def suits(self) -> bool:
        """Whether chance alone explains, for every number of items, how many overall scores miss their intervals.

        False, too, for a single model outside its interval, which happens by chance one time in twenty (at level 0.95).
        """
        rare = 0.05  # so seldom chance alone leaves as many outside, where a check says that the bank does
        for size in {one.n_chosen for one in self.scores}:
            scores = [one for one in self._overall() if one.n_chosen == size]
            n_outside = sum(not one.is_covered for one in scores)
            # the binomial probability of so many misses or more
            by_chance = bdtrc(n_outside - 1, len(scores), max(1.0 - self.level, rare)) if n_outside else 1.0
            if by_chance <= rare + 1e-9:
                return False
        return True

    def _overall(self) -> list[CheckedScore]:
        return [one for one in self.scores if one.target == OVERALL and one.is_known]

    def rows(self) -> list[dict[str, Any]]:
        """One record a number of items, model and target."""
        return [one.to_dict() for one in self.scores]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "bank": self.bank_id,
            "level": self.level,
            "suits": self.suits,
            "verdicts": list(self.verdicts),
            "hints": list(self.hints),
        }


def check_bank(
    bank: GivenBank,
    responses: GivenResponses,
    *,
    sizes: Sequence[int] = (),
    selection: GivenSelection | None = None,
    level: float = 0.95,
    ignore_unknown: bool = False,
    rng: int = 0,
    progress: ProgressCallback = silent,
) -> BankCheck:
    """Compare what the bank says of models from few items with their scores on all of them.

    Items are chosen as `select` does and scores estimated as `estimate` does, from the chosen items alone.

    Parameters
    ----------
    bank : Bank or path
    responses : ResponseMatrix, path or paths
        Of models that ran all items, none of them among the bank's.
    sizes : sequence of int
        Numbers of items to choose; by default 30, 100 and 300, as far as the benchmark has more.
    selection : Selection or path, optional
        Check these items instead.
    level : float
        Of the intervals.
    ignore_unknown : bool
        Leave out items that the bank does not hold.
    rng : int
        Seed of the random choices of items.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When no model ran all items of any scenario, or an item is not in the bank.
    ParameterError
        When a number of items, or the level, is not valid.

    Examples
    --------
    >>> print(check_bank(bank, "full-run.parquet").verdicts)  # doctest: +SKIP
    """
    check_fraction("level", level)
    for size in sizes:
        check_whole("a number of items to check", size, least=1)
    bank = as_bank(bank)
    matrix = known_items(bank, as_new_responses(bank, responses), None, ignore_unknown=ignore_unknown)
    truth, n_missing = _scores_and_missing(bank, matrix)
    if np.isnan(truth).all():
        names = [f"{name} ({n} missing)" for name, n in zip(matrix.model_ids, n_missing.tolist(), strict=True)]
        raise DataError(
            f"a check needs models that ran all {bank.n_items} items of the bank, or all of a scenario, got "
            f"{shown(names)}. Give their full runs."
        )
    given = as_selection(selection)
    least = bank.targets.n_scenarios
    usual = [size for size in (30, 100, 300) if least <= size < bank.n_items] or [max(least, bank.n_items // 2)]
    wanted = [given.n_items] if given is not None else list(sizes) or usual
    scores: list[CheckedScore] = []
    for number, size in enumerate(wanted):
        report = part_of(progress, number / len(wanted), (number + 1) / len(wanted), f"{size} items: ")
        chosen = given or select(bank, size, rng=rng, progress=report)
        scores.extend(_checked(bank, matrix, truth, chosen, level=level, progress=report))
    return BankCheck(bank.bank_id, level, tuple(scores), tuple(_hints(bank, matrix, truth)))


def ran_all_of_a_scenario(bank: Bank, responses: ResponseMatrix) -> bool:
    """Whether any model answered every item of any scenario, so that its score can be compared with an estimate."""
    known, _ = only_items(responses, bank.responses.items["item_id"])
    return bool(known.n_items) and not np.isnan(_scores_and_missing(bank, known)[0]).all()


def _scores_and_missing(bank: Bank, responses: ResponseMatrix) -> tuple[FloatArray, IntArray]:
    """Scores (n_models, n_targets), NaN where not all that counts was run, and items that each model did not run."""
    values = np.full((responses.n_models, bank.n_items), np.nan)
    values[:, bank_positions(bank, responses.items["item_id"], "responses")] = responses.responses
    is_missing = np.isnan(values) & (bank.targets.weights > 0.0)
    n_missing_of = scenario_sums(is_missing.astype(np.float64), bank.targets.scenario_index, bank.targets.n_scenarios)
    means = np.where(n_missing_of > 0.0, np.nan, bank.targets.scenario_means(values, missing=True))
    return bank.targets.with_overall(means), is_missing.sum(axis=1)


def _checked(
    bank: Bank,
    responses: ResponseMatrix,
    truth: FloatArray,
    selection: Selection,
    *,
    level: float,
    progress: ProgressCallback,
) -> Iterator[CheckedScore]:
    """Estimate all models' scores from the chosen items; of what nothing is known `estimate` warns."""
    estimates = estimate(bank, responses, selection=selection, level=level, progress=progress)
    expected = np.full(truth.shape[1], np.nan)
    if estimates.interval_kind == "design":
        expected = np.sqrt(2.0 / np.pi) * mean_where_known(estimates.standard_error)  # of normal errors
    elif folds(bank):
        asked = Asked.of_past(bank, selection)
        spec = choose_method(asked, progress).spec
        errors = np.abs(try_methods(asked, spec.members).by(spec).error)
        known = ~np.isnan(errors)
        expected[known.any(axis=0)] = np.nanmean(errors[:, known.any(axis=0)], axis=0)
    place_of = {model: place for place, model in enumerate(estimates.model_ids)}
    for row in estimates.rows():
        if np.isnan(row["estimate"]):
            continue
        model, target = place_of[row["model_id"]], estimates.targets.index(row["target"])
        yield CheckedScore(
            **{name: row[name] for name in ("model_id", "target", "n_items", "n_total", "estimate", "low", "high")},
            n_chosen=selection.n_items,
            is_drawn=estimates.interval_kind == "design",
            truth=float(truth[model, target]),
            expected_error=float(expected[target]),
        )


def _hints(bank: Bank, responses: ResponseMatrix, truth: FloatArray) -> Iterator[str]:
    """Say what may make these models unlike those of the bank: scores outside theirs, and dates after theirs."""
    known = bank.best_known_scores[:, -1]
    known = known[~np.isnan(known)]
    low, high = (float(known.min()), float(known.max())) if known.size else (-np.inf, np.inf)
    for where, is_there in (("above", truth[:, -1] > high), ("below", truth[:, -1] < low)):
        names = [responses.model_ids[row] for row in np.flatnonzero(is_there).tolist()]
        if names:
            yield (
                f"{shown(names)}: the overall score is {where} those of all past models ({100 * low:.1f} to "
                f"{100 * high:.1f} points)."
            )
    newest, dates = bank.newest, model_dates(responses.models)
    if newest is not None:
        yield f"The newest past model is of {newest!s}."
    if newest is not None and dates is not None:
        newer = responses.models.filter(dates > newest)["model_id"].to_list()
        if newer:
            yield f"{shown(newer)}: newer than all past models."
