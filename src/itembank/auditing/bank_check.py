"""The verb `check_bank`: a bank's estimates beside the scores of models that ran everything."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from itembank.auditing.bank_check_results import BankCheck, CheckedScore
from itembank.bank.arguments import GivenBank, GivenResponses, GivenSelection, as_bank, as_new_responses, as_selection
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.checks import check_fraction, check_whole
from itembank.errors import DataError, shown
from itembank.estimation.estimate import estimate
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import choose_method, sample_of, try_methods
from itembank.estimation.observations import bank_positions, known_items
from itembank.estimation.predictions import scenario_sums
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.agreement import only_items
from itembank.responses.responses import ResponseMatrix

SIZES = (30, 100, 300)


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
        Seed of what is left to chance in the choice of items.
    progress : ProgressCallback

    Returns
    -------
    BankCheck

    Raises
    ------
    DataError
        When no model ran all items of any scenario, or an item is not in the bank.
    ParameterError
        When a number of items, or the level, is not what it must be.

    Examples
    --------
    >>> print(check_bank(bank, "full-run.parquet").verdicts)  # doctest: +SKIP
    """
    check_fraction("level", level)
    for size in sizes:
        check_whole("a number of items to check", size, least=1)
    bank = as_bank(bank)
    matrix = known_items(bank, as_new_responses(bank, responses), None, ignore_unknown=ignore_unknown)
    truth = _full_scores(bank, matrix)
    given = as_selection(selection)
    wanted = [given.n_items] if given is not None else list(sizes) or _default_sizes(bank)
    scores: list[CheckedScore] = []
    for number, size in enumerate(wanted):
        report = part_of(progress, number / len(wanted), (number + 1) / len(wanted), f"{size} items: ")
        chosen = given or select(bank, size, rng=rng, progress=report)
        scores.extend(_checked(bank, matrix, truth, chosen, level=level, progress=report))
    return BankCheck(bank.bank_id, level, tuple(scores), tuple(_hints(bank, matrix, truth)))


def _default_sizes(bank: Bank) -> list[int]:
    """Numbers of items that leave some out and suffice for every scenario."""
    least = bank.targets.n_scenarios
    return [size for size in SIZES if least <= size < bank.n_items] or [max(least, bank.n_items // 2)]


def ran_all_of_a_scenario(bank: Bank, responses: ResponseMatrix) -> bool:
    """Whether any model answered every item of any scenario, so that its score can be compared with an estimate."""
    known, _ = only_items(responses, bank.responses.items["item_id"])
    return bool(known.n_items) and not np.isnan(_scores_and_missing(bank, known)[0]).all()


def _full_scores(bank: Bank, responses: ResponseMatrix) -> FloatArray:
    """Scores from all items, (n_models, n_targets); NaN where a model did not run all that count."""
    result, n_missing = _scores_and_missing(bank, responses)
    if np.isnan(result).all():
        names = [f"{name} ({n} missing)" for name, n in zip(responses.model_ids, n_missing.tolist(), strict=True)]
        raise DataError(
            f"a check needs models that ran all {bank.n_items} items of the bank, or all of a scenario, got "
            f"{shown(names)}. Give their full runs."
        )
    return result


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
    sample = sample_of(bank, selection)
    spec = choose_method(bank, sample, selection, progress=progress).spec
    estimates = estimate(bank, responses, selection=selection, level=level, progress=progress)
    expected = np.full(truth.shape[1], np.nan)
    if folds(bank):
        errors = np.abs(try_methods(bank, sample, selection, spec.members).by(spec).error)
        known = ~np.isnan(errors)
        expected[known.any(axis=0)] = np.nanmean(errors[:, known.any(axis=0)], axis=0)
    others = zip(truth.ravel().tolist(), np.tile(expected, responses.n_models).tolist(), strict=True)
    for row, (true_score, error) in zip(estimates.rows(), others, strict=True):
        if np.isnan(row["estimate"]):
            continue
        yield CheckedScore(
            **{name: row[name] for name in ("model_id", "target", "n_items", "n_total", "estimate", "low", "high")},
            n_chosen=selection.n_items,
            truth=true_score,
            expected_error=error,
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
                f"{shown(names)}: the overall score is {where} those of all models of the bank ({low:.3f} to "
                f"{high:.3f})."
            )
    for name, kind in bank.responses.models.schema.items():
        if kind in {pl.Date, pl.Datetime}:
            yield from _dates(name, bank.responses.models[name], responses.models)


def _dates(name: str, dates: pl.Series, models: pl.DataFrame) -> Iterator[str]:
    """Say of which time the bank's models are, and which models are newer."""
    days = dates.drop_nulls().cast(pl.Date)
    if not days.len():
        return
    yield f"The bank's models are from {days.min()!s} to {days.max()!s} ({name})."
    if name in models.columns and models.schema[name] in {pl.Date, pl.Datetime}:
        newer = models.filter(pl.col(name).cast(pl.Date) > days.max())["model_id"].to_list()
        if newer:
            yield f"{shown(newer)}: newer than all models of the bank."
