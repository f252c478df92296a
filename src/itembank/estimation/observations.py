"""New responses aligned with the items of a bank."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, did_you_mean, shown
from itembank.estimation.predictions import scenario_sums
from itembank.irt.family_names import COUNTS
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray, mean_where_known
from itembank.numerics.paired import is_count
from itembank.responses.how_read import ATTEMPT_VARIANCE, PASS_K, check_one_power
from itembank.responses.responses import ResponseMatrix
from itembank.responses.sizes import graded_items
from itembank.tables import plural

SEED = 50


@dataclass(frozen=True, slots=True)
class Observations:
    """Responses of new models to n_columns items of a bank."""

    responses: FloatArray  # (n_models, n_columns): Raw; NaN where missing
    positions: IntArray  # (n_columns,): Position of each item in the bank
    # (n_columns,): Weights of the weighted mean: the selection's, or the target's within its scenario without one.
    weights: FloatArray
    n_missing: IntArray  # (n_models,): Items of the selection without a response
    is_random: bool  # Whether the items count as a random sample; without a selection they do
    # (n_selected,): Positions of the items that were to be answered: the selection's, or the columns'.
    selected: IntArray
    selected_weights: FloatArray  # (n_selected,)
    # (n_models, n_columns): Trials behind each response, where the bank's family is one of counts and they are known.
    n_trials: FloatArray | None = None

    @classmethod
    def of_items(
        cls,
        responses: FloatArray,
        positions: IntArray,
        weights: FloatArray,
        *,
        is_random: bool,
        n_trials: FloatArray | None = None,
    ) -> Self:
        """Align raw responses (n_models, n_columns) with the items at these positions, with these weights."""
        nothing_missing = np.zeros(responses.shape[0], dtype=np.int64)
        return cls(responses, positions, weights, nothing_missing, is_random, positions, weights, n_trials)

    def answered_by_calibration_models(
        self, bank: Bank, rows: IntArray | None = None, *, attempts: float | None = None
    ) -> "Observations":
        """Return the same items answered by a bank's past models, all or those at these rows.

        With `attempts` of a count, in `past_runs` of so many: estimates from fewer attempts err by more.
        """
        rows = np.arange(bank.n_models) if rows is None else rows
        if attempts is None:
            n_trials = counted_trials(bank, bank.responses)
            responses = np.ascontiguousarray(bank.responses.of_items(self.positions, models=rows))
        else:
            of_all, n_trials = past_runs(bank, attempts)
            responses = of_all[np.ix_(rows, self.positions)]
        of_cells = None if n_trials is None else n_trials[np.ix_(rows, self.positions)]
        nothing_missing = np.zeros(rows.size, dtype=np.int64)
        return replace(self, responses=responses, n_missing=nothing_missing, n_trials=of_cells)

    def answered(self, n_items: int) -> BoolArray:
        """Say which of a bank's items each model answered, (n_models, n_items)."""
        result = np.zeros((len(self.responses), n_items), dtype=bool)
        result[:, self.positions] = ~np.isnan(self.responses)
        return result

    def fewer_attempts(self, bank: Bank) -> float | None:
        """Return how often these models attempted an item, where it is `fewer_than_past`; else None."""
        return None if self.n_trials is None else fewer_than_past(bank, usual_attempts(self.n_trials, self.responses))

    def take(self, *, models: IntArray, columns: IntArray) -> "Observations":
        """Return some models and columns; the items that were to be answered stay."""
        return replace(
            self,
            responses=self.responses[np.ix_(models, columns)],
            positions=self.positions[columns],
            weights=self.weights[columns],
            n_missing=self.n_missing[models],
            n_trials=None if self.n_trials is None else self.n_trials[np.ix_(models, columns)],
        )


def fewer_than_past(bank: Bank, attempts: float) -> float | None:
    """Return this number of attempts at an item where past models made more, and it is known how these vary; else None.

    Means of graded attempts alone do not tell what fewer would have given (`has_unknown_chance`).
    """
    past = counted_trials(bank, bank.responses)
    if past is None or attempts >= usual_attempts(past, bank.responses.responses):
        return None
    return None if has_unknown_chance(bank) else attempts


def is_graded(bank: Bank) -> bool:
    """Whether some of the past models' responses are means of graded attempts, and not shares of right ones."""
    found: bool = bank.cache.remember("graded attempts", lambda: bool(graded_items(bank.responses).any()))
    return found


def has_unknown_chance(bank: Bank) -> bool:
    """Whether past models' responses are means of graded attempts, of which none tells how much they vary."""
    items = bank.responses.items
    return is_graded(bank) and (ATTEMPT_VARIANCE not in items.columns or items[ATTEMPT_VARIANCE].is_null().all())


def attempt_variances(bank: Bank) -> FloatArray:
    """Variance of one attempt of each past model at each item, (n_models, n_items); NaN where it is not known.

    Of n attempts that are right or wrong ``y (1 - y) n / (n - 1)``. Of graded ones that of the item, or of all items
    (`ATTEMPT_VARIANCE`), in proportion to ``y (1 - y)``, which is the most that it can be.
    """
    answers, n_trials = bank.responses.responses.astype(np.float64), counted_trials(bank, bank.responses)
    n = np.ones(answers.shape) if n_trials is None else n_trials
    most = np.where(~np.isnan(answers) & (n >= 2.0), answers * (1.0 - answers) * n / np.maximum(n - 1.0, 1.0), np.nan)
    if not is_graded(bank):
        return most
    usual = mean_where_known(most)
    told = bank.responses.items[ATTEMPT_VARIANCE].cast(pl.Float64).fill_null(np.nan).to_numpy()
    both = ~np.isnan(told) & ~np.isnan(usual)
    of_all = told[both].sum() / max(float(usual[both].sum()), np.finfo(np.float64).tiny)
    shares = np.divide(told, usual, out=np.full(told.shape, of_all), where=both & (usual > 0.0))
    result: FloatArray = most * np.clip(shares, 0.0, 1.0)
    return result


def past_runs(bank: Bank, attempts: float) -> tuple[FloatArray, FloatArray]:
    """Draw so many attempts of each past model at each item: responses and trials, (n_models, n_items) each."""

    def draw() -> tuple[FloatArray, FloatArray]:
        responses, n_trials = bank.responses.responses.astype(np.float64), counted_trials(bank, bank.responses)
        cells = np.ix_(*bank.content_order)
        n_trials = np.ones(responses.shape) if n_trials is None else n_trials.copy()
        variance = attempt_variances(bank)[cells] if is_graded(bank) else None
        responses[cells], n_trials[cells] = _drawn_attempts(responses[cells], n_trials[cells], attempts, variance)
        return responses, n_trials

    found: tuple[FloatArray, FloatArray] = bank.cache.remember(("past runs", attempts), draw)
    return found


def scores_of_past(bank: Bank, attempts: float | None) -> FloatArray:
    """Known scores of past models, (n_models, n_targets); with `attempts` those of their `past_runs` of so many."""
    known = bank.known_scores.value
    if attempts is None:
        return known
    moved = np.nan_to_num(past_runs(bank, attempts)[0] - bank.responses.responses) * bank.targets.weights
    parts = scenario_sums(moved, bank.targets.scenario_index, bank.targets.n_scenarios)
    return np.asarray(known + bank.targets.with_overall(parts))


def found_items(bank: Bank, responses: ResponseMatrix, selection: Selection | None) -> Observations:
    """Align responses in the same way without a warning of missing items."""
    positions = bank_positions(bank, responses.items["item_id"], "responses")
    if PASS_K in responses.items.columns or responses.n_trials is not None:  # others are what the caller calculated
        check_one_power([responses.items, bank.responses.items])
    order = np.argsort(positions)  # the order of a file's items must not matter, not even to rounding
    if np.any(order[1:] < order[:-1]):
        responses, positions = responses.take(items=order), positions[order]
    n_trials = counted_trials(bank, responses)
    if selection is None:
        weights = bank.targets.weights[positions]
        return Observations.of_items(responses.responses, positions, weights, is_random=True, n_trials=n_trials)
    selected = bank_positions(bank, pl.Series(selection.item_ids, dtype=pl.String), "the selection")
    _check_scenarios(bank, selection, selected)
    weight_of = np.full(bank.n_items, np.nan)
    weight_of[selected] = selection.weights
    columns = np.flatnonzero(~np.isnan(weight_of[positions]))
    values, positions, selected = responses.responses[:, columns], positions[columns], np.sort(selected)
    return Observations(
        values,
        positions,
        weight_of[positions],
        selection.n_items - np.sum(~np.isnan(values), axis=1),
        selection.is_random,
        selected,
        weight_of[selected],
        None if n_trials is None else n_trials[:, columns],
    )


def counted_trials(bank: Bank, responses: ResponseMatrix) -> FloatArray | None:
    """Trials behind each response, (n_models, n_items), where the bank's family counts them."""
    if bank.parameters.family not in COUNTS:
        return None
    if responses.n_trials is not None:
        return responses.n_trials.astype(np.float64)
    values = responses.responses
    is_single = bool(np.all((values == 0.0) | (values == 1.0) | np.isnan(values)))  # right or wrong: one trial each
    # nothing tells of means where past models' have numbers of attempts: one graded attempt each
    return np.ones(values.shape) if is_single or (bank.n_models and is_graded(bank)) else None


def attempts_of(responses: FloatArray, n_trials: FloatArray | IntArray | None) -> FloatArray:
    """Count the attempts at an item in one run of each model, (n_models,); None for one behind each response."""
    if n_trials is None:
        return np.ones(responses.shape[0])
    return np.array([usual_attempts(*one) for one in zip(n_trials, responses, strict=True)])


def chance_shares(
    responses: FloatArray,  # (n_models, n_columns)
    n_trials: FloatArray | IntArray | None,  # (n_models, n_columns); None for one attempt behind each response
    weights: FloatArray,  # (n_columns,): omega: of each item in its scenario's score
    scenario_index: IntArray,  # (n_columns,)
    n_scenarios: int,
) -> FloatArray:
    """Part of the chance of one attempt that is left in the score of each scenario, (n_models, n_scenarios).

    With n_i attempts at an item it is 1 / n_i: the mean of that over the answered items, by the squares of their
    weights. A scenario without an answer that counts is taken to be attempted as all answered items are.
    """
    if n_trials is None:
        return np.ones((responses.shape[0], n_scenarios))
    seen = ~np.isnan(responses)
    share = seen / np.maximum(n_trials, 1.0)
    total, left = (scenario_sums(each * weights**2, scenario_index, n_scenarios) for each in (seen, share))
    n_seen = seen.sum(axis=1)
    of_all = np.where(n_seen > 0, share.sum(axis=1) / np.maximum(n_seen, 1), 1.0)
    result: FloatArray = np.divide(left, total, out=np.tile(of_all[:, None], n_scenarios), where=total > 0.0)
    return result


def are_counts(responses: FloatArray, n_trials: FloatArray | IntArray) -> BoolArray:
    """Whether all repeated attempts of each model were right or wrong (`is_count`), (n_models,)."""
    result: BoolArray = np.all(np.isnan(responses) | (n_trials < 2) | is_count(responses, n_trials), axis=1)
    return result


def usual_attempts(n_trials: FloatArray | IntArray, responses: FloatArray) -> float:
    """Return the median number of attempts at an item that was answered, at least one."""
    answered = n_trials[~np.isnan(responses)]
    return max(float(np.median(answered)), 1.0) if answered.size else 1.0


def _drawn_attempts(
    responses: FloatArray, n_trials: FloatArray, attempts: float, variance: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Draw some of each cell's attempts without putting back; the draw is the same each time.

    With the `variance` of one attempt, attempts are graded: the mean of k of n has the variance ``s^2 (1 / k - 1 / n)``
    about that of all, and is drawn from a beta distribution.
    """
    known, rng = ~np.isnan(responses) & (n_trials >= 1.0), np.random.default_rng(SEED)
    n = np.where(known, n_trials, 1.0).astype(np.int64)
    drawn = np.minimum(n, round(attempts))
    answers = np.where(known, responses, 0.0)
    if variance is None:
        right = np.rint(answers * n).astype(np.int64)
        means = rng.hypergeometric(right, n - right, drawn) / drawn
    else:
        most = answers * (1.0 - answers)
        moved = np.minimum(np.nan_to_num(variance) * (1.0 / drawn - 1.0 / n), 0.95 * most)
        varies = moved > 1e-6
        size = np.divide(most, moved, out=np.full(most.shape, 2.0), where=varies) - 1.0
        mean = np.where(varies, answers, 0.5)
        means = np.where(varies, rng.beta(size * mean, size * (1.0 - mean)), answers)
    return np.where(known, means, np.nan), np.where(known, drawn, 0).astype(np.float64)


def _check_scenarios(bank: Bank, selection: Selection, chosen: IntArray) -> None:
    """Refuse a selection whose scenarios are not the bank's, or that gives one of them no weight."""
    index = bank.targets.scenario_index[chosen]
    bank_scenarios = [bank.targets.scenarios[j] for j in index]
    moved = [
        item
        for item, theirs, ours in zip(selection.item_ids, selection.scenarios, bank_scenarios, strict=True)
        if theirs != ours
    ]
    if moved:
        raise DataError(
            f"scenarios of the selection must be those of bank {bank.bank_id}, got others for "
            f"{plural(len(moved), 'item')}: {shown(moved)}. Choose again from this bank."
        )
    mass = np.bincount(index, weights=selection.weights, minlength=bank.targets.n_scenarios)
    empty = [bank.targets.scenarios[j] for j in np.unique(index) if mass[j] <= 0.0]
    if empty:
        raise DataError(f"weights of the selection must not all be zero in a scenario, but are in {shown(empty)}.")


def size_in_words(bank: Bank) -> str:
    """Say how many items a bank holds, and of how many if its score has more."""
    return f"{bank.n_items:,}{'' if bank.rest is None else f' of its {bank.n_total:,}'}"


def bank_positions(
    bank: Bank, item_ids: pl.Series, source: str, *, advice: str = "Leave them out, or check"
) -> IntArray:
    """Position of each item in the bank; `DataError` names those it does not hold, and begins its advice so."""
    known = bank.responses.items["item_id"]
    if item_ids.len() == known.len() and bool((item_ids == known).all()):
        return np.arange(known.len())
    index = pl.DataFrame({"item_id": known, "position": np.arange(known.len())})
    wanted = pl.DataFrame({"item_id": item_ids, "row": np.arange(item_ids.len())})
    located = wanted.join(index, on="item_id", how="left").sort("row")
    absent = located.filter(pl.col("position").is_null())["item_id"]
    if absent.len():
        raise DataError(
            f"every item of {source} must be in bank {bank.bank_id}, which holds {size_in_words(bank)}: "
            f"{absent.len()} of {item_ids.len()} are not: {shown(absent.to_list())}."
            f"{did_you_mean(absent.to_list(), known)} {advice} that both come from the same benchmark and reader."
        )
    return located["position"].to_numpy()
