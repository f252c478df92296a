"""A bank's estimates beside the scores of models that ran everything: the verb `check_bank` and its result."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
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
from itembank.tables import plural
from itembank.tabular import Tabular, records


@dataclass(frozen=True, slots=True, repr=False)
class BankCheck(Tabular):
    """How good a bank's estimates are for models that ran everything.

    Attributes
    ----------
    bank_id : str
    level : float
        Of the intervals.
    table : table of one row a number of items, model and target
        `model_id`, `target`; `n_chosen` items in all, and `n_items` of the `n_total` of the target; `truth` from all
        items, NaN where the model did not run all of them; `estimate` from the chosen items alone, its interval `low`
        to `high`, and its `error`; `expected_error`: the cross-validated mean absolute error of past models with items
        chosen in the same way, of drawn items that of such a draw, NaN where it is not known; whether the truth is
        `covered`, null where it or the interval is not known; `verdict`, the same in a word.
    verdicts : tuple of str
        A sentence on the overall score of each model and number of items.
    hints : tuple of str
        What about the models may make them unlike past models.
    """

    schema = "check"
    header = ("bank=bank_id", "level", "suits", "verdicts", "hints")

    bank_id: str
    level: float
    table: pl.DataFrame
    verdicts: tuple[str, ...]
    hints: tuple[str, ...]

    @property
    def scores(self) -> tuple[SimpleNamespace, ...]:
        """The rows of the table, whose columns are their attributes."""
        return records(self.table)

    @property
    def suits(self) -> bool:
        """Whether chance alone explains, for every number of items, how many overall scores miss their intervals.

        False, too, for a single model outside its interval, which happens by chance one time in twenty (at level 0.95).
        """
        rare = 0.05  # so seldom chance alone leaves as many outside, where a check says that the bank does
        known = self.table.filter(pl.col("target") == OVERALL, pl.col("covered").is_not_null())
        misses = known.group_by("n_chosen").agg(n=pl.len(), n_outside=pl.col("covered").not_().sum())
        # the binomial probability of so many misses or more
        return not any(
            n_outside and bdtrc(n_outside - 1, n, max(1.0 - self.level, rare)) <= rare + 1e-9
            for n, n_outside in misses.select("n", "n_outside").iter_rows()
        )

    @property
    def in_brief(self) -> tuple[str, ...]:
        """Say the same as the verdicts in a sentence or two for each number of items."""
        known = self.table.filter(pl.col("target") == OVERALL, pl.col("covered").is_not_null())
        sentences = []
        for (size,), one in known.group_by("n_chosen", maintain_order=True):
            outside = one.filter(~pl.col("covered"))["model_id"].to_list()
            error, expected = (one[name].abs().to_numpy() for name in ("error", "expected_error"))
            against = "" if np.isnan(expected).any() else f", against {100.0 * expected.mean():.1f} expected"
            sentences.append(
                f"{size} items: {one.height - len(outside)} of {plural(one.height, 'score', 'are')} within what the "
                f"bank expects, and errors average {100.0 * error.mean():.1f} points{against}."
                f"{f' Outside: {shown(outside)}.' if outside else ''}"
            )
        if not self.suits:
            sentences.append("More are outside than chance explains: calibrate the bank with models like these.")
        return tuple(sentences)


def judged(
    scores: pl.DataFrame,  # The columns of a check's table, but for those that are made here
    level: float,
    *,
    is_drawn: bool = False,  # Whether the intervals rest on how the items were drawn
) -> tuple[pl.DataFrame, list[str]]:
    """Compare estimates with the truth: the table of a check, and a sentence on each overall score that is known."""
    low, truth, high = pl.col("low"), pl.col("truth"), pl.col("high")
    covered = pl.when((low + truth + high).is_not_nan()).then((low - 1e-9 <= truth) & (truth <= high + 1e-9))
    verdict = pl.when(covered).then(pl.lit("within")).when(covered.not_()).then(pl.lit("outside"))
    table = scores.select(
        *("model_id", "target", "n_chosen", "n_items", "n_total", "truth", "estimate"),
        (pl.col("estimate") - truth).alias("error"),
        *("expected_error", "low", "high"),
        covered.alias("covered"),
        verdict.otherwise(pl.lit("unknown")).alias("verdict"),
    )
    known = table.filter(pl.col("target") == OVERALL, pl.col("covered").is_not_null())
    return table, [_in_words(row, level, is_drawn) for row in known.iter_rows(named=True)]


def _in_words(row: dict[str, Any], level: float, is_drawn: bool) -> str:
    """Say in points how far an estimate is off, and whether the bank expects that."""
    side = row["high"] - row["estimate"] if row["error"] < 0.0 else row["estimate"] - row["low"]
    whose = "errors of such draws" if is_drawn else "cross-validated errors of past models"
    own = "" if math.isnan(row["expected_error"]) else f"; {whose} average {100.0 * row['expected_error']:.1f}"
    bank_says = f"what the bank expects ({100.0 * side:.1f} at {100.0 * level:g} %{own})"
    start = f"{row['model_id']}, {row['n_chosen']} items: the error of {100.0 * abs(row['error']):.1f} points is"
    if row["covered"]:
        return f"{start} within {bank_says}."
    if is_drawn:
        often = f"{100.0 * (1.0 - level):g} of 100"
        return f"{start} outside {bank_says}. By chance that is so for {often} models, often for several at a draw."
    return (
        f"{start} outside {bank_says}. The bank does not suit this model: calibrate it with models like this one, "
        "or take more items."
    )


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
    tables, verdicts = [], []
    for number, size in enumerate(wanted):
        report = part_of(progress, number / len(wanted), (number + 1) / len(wanted), f"{size} items: ")
        chosen = given or select(bank, size, rng=rng, progress=report)
        table, said = _checked(bank, matrix, truth, chosen, level=level, progress=report)
        tables.append(table)
        verdicts += said
    return BankCheck(bank.bank_id, level, pl.concat(tables), tuple(verdicts), tuple(_hints(bank, matrix, truth)))


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
) -> tuple[pl.DataFrame, list[str]]:
    """Estimate all models' scores from the chosen items; of what nothing is known `estimate` warns."""
    estimates = estimate(bank, responses, selection=selection, level=level, progress=progress)
    expected = np.full(truth.shape[1], np.nan)
    is_drawn = estimates.interval_kind == "design"
    if is_drawn:
        expected = np.sqrt(2.0 / np.pi) * mean_where_known(estimates.standard_error)  # of normal errors
    elif folds(bank):
        asked = Asked.of_past(bank, selection)
        spec = choose_method(asked, progress).spec
        errors = np.abs(try_methods(asked, spec.members).by(spec).error)
        known = ~np.isnan(errors)
        expected[known.any(axis=0)] = np.nanmean(errors[:, known.any(axis=0)], axis=0)
    scores = estimates.to_polars().filter(pl.col("estimate").is_not_nan())
    models = [estimates.model_ids.index(name) for name in scores["model_id"]]
    targets = [estimates.targets.index(name) for name in scores["target"]]
    scores = scores.with_columns(
        n_chosen=pl.lit(selection.n_items, pl.Int64),
        truth=pl.Series(truth[models, targets]),
        expected_error=pl.Series(expected[targets]),
    )
    return judged(scores, level, is_drawn=is_drawn)


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
