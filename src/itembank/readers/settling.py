"""What rows say, settled in one place: counts, lost answers, ranges; then copies and attempts, one response a cell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from itembank.errors import N_SHOWN, DataError, DataWarning, first_few, remedy, shown, warn
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.paired import AGREEMENT, is_count
from itembank.readers.reading_specs import ReadingSpec, Repeats, how
from itembank.readers.rows import ResponseRows
from itembank.responses.error_kinds import ERROR, NO_ANSWER
from itembank.responses.labels import come_again, named, numbered
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import DEFAULT_SCENARIO, MOST_TRIALS
from itembank.tables import plural

ROUNDING = 1e-9
"""How far beyond 0 or 1 a response may be: sums of shares miss the ends by their last digits, and count as the end."""


def settle_rows(
    values: Mapping[str, FloatArray | None],  # `response`, `n_trials`, `n_correct`, `n_errors`: (n_rows,); NaN: missing
    told: IntArray | None,  # Kind of the error that each row tells, 0 for none; None where the source tells none
    spec: ReadingSpec,
    source: str,
    *,
    pairs: Callable[[IntArray], list[str]],  # Names the first few of some rows
    problems: list[str],  # What is wrong is added to it
) -> dict[str, FloatArray | IntArray]:
    """Settle what rows say of answers, trials and errors, as columns of `ResponseRows`; and say what cannot be."""
    response, trials = settle_counts(values, spec, source, pairs, problems)
    lost = _lost(response, told, values["n_trials"], values["n_errors"], problems)
    found: dict[str, FloatArray | IntArray] = {"response": response} | ({} if trials is None else {"n_trials": trials})
    if lost is None:
        return found
    is_gone = (lost[0] > 0) if values["n_errors"] is None or trials is None else (lost[0] > 0) & (trials == 0)
    n_scored = int(np.count_nonzero(is_gone & (response > 0.0)))
    if n_scored:
        warn(
            f"{source}: {plural(n_scored, 'row', 'have')} an error and a response above 0 all the same. Their answers "
            f"are lost; if such responses count, leave the errors out ({how(columns={'error': ''})}).",
            DataWarning,
        )
    found |= {"response": np.where(is_gone, np.nan, response), "n_errors": lost[0], "error": lost[1]}
    return found if trials is None else found | {"n_trials": np.where(is_gone, 0, trials)}


def shares_of(marks: FloatArray, highest: float) -> FloatArray:
    """Divide marks, an array, by the highest that there is; what is beyond 0 or 1 by `ROUNDING` is at that end."""
    shares = marks if highest == 1.0 else marks / highest
    with np.errstate(invalid="ignore"):
        is_near = ((shares < 0.0) & (shares >= -ROUNDING)) | ((shares > 1.0) & (shares <= 1.0 + ROUNDING))
    return np.where(is_near, np.clip(shares, 0.0, 1.0), shares) if is_near.any() else shares


def settle_counts(
    values: Mapping[str, FloatArray | None],  # As of `settle_rows`
    spec: ReadingSpec,  # `n_correct` counts only where the response column is the usual one
    source: str,
    pairs: Callable[[IntArray], list[str]],  # Names the first few of some rows
    problems: list[str],  # What is wrong is added to it
) -> tuple[FloatArray, IntArray | None]:
    """Find responses and trials of the rows, and say what cannot be.

    Responses, (n_rows,), are n_correct / n_trials where both are known, else as given, divided by the maximum; NaN
    where missing. Trials, (n_rows,), are 1 for a response of unknown trials, 0 where the response is missing; None when
    none are known.
    """
    given, trials = values["response"], values["n_trials"]
    correct = values["n_correct"] if spec.response_column == "response" else None
    known = next(one for one in values.values() if one is not None)
    nothing = np.full(known.shape, np.nan)
    given = nothing if given is None else shares_of(given, spec.max_response)
    if trials is None and correct is None:
        return given, None
    trials, correct = nothing if trials is None else trials, nothing if correct is None else correct
    with np.errstate(invalid="ignore"):
        has_correct, has_trials, is_zero = ~np.isnan(correct), ~np.isnan(trials), trials == 0.0
        is_possible = (correct >= 0.0) & (correct <= trials)
        has_counts = has_correct & (trials >= 1.0) & is_possible
        ratio = np.divide(correct, trials, out=np.full(correct.shape, np.nan), where=has_counts)
        response = np.where(has_counts, ratio, given)
        is_count = (trials >= 0.0) & (trials == np.floor(trials)) & (trials < MOST_TRIALS)
        rules: tuple[tuple[str, BoolArray, Callable[[int], str]], ...] = (
            (
                "n_correct must come with n_trials",
                has_correct & ~has_trials,
                lambda row: f"{correct[row]:g} of unknown",
            ),
            (
                "n_correct must be a whole number from 0 to n_trials",
                has_correct & (trials >= 0.0) & (~is_possible | (correct != np.floor(correct))),
                lambda row: f"{correct[row]:g} of {trials[row]:g}",
            ),
            (
                "response must be n_correct / n_trials where all three are given",
                has_counts & (np.abs(given - ratio) > AGREEMENT),
                lambda row: f"{correct[row]:g} of {trials[row]:g}, response {given[row]:g}",
            ),
            (
                f"n_trials must be a whole number below {MOST_TRIALS:,}, and at least 1 where there is a response",
                # successes among zero trials are told by another rule
                (has_trials & ~is_count) | (is_zero & ~np.isnan(response) & ~(correct > 0.0)),
                lambda row: f"{trials[row]:g}",
            ),
        )
    for what, is_broken, text in rules:
        rows = np.flatnonzero(is_broken)
        if rows.size:
            where = [f"{pair} ({text(row)})" for pair, row in zip(pairs(rows), rows[:N_SHOWN].tolist(), strict=True)]
            problems.append(
                f"{what}, got {plural(rows.size, 'row')} with something else: {first_few(where, rows.size)}."
            )
    empty = np.flatnonzero(is_zero & np.isnan(response) & ~(correct > 0.0))
    if empty.size:
        names = first_few(pairs(empty), empty.size)
        warn(
            f"{source}: {plural(empty.size, 'row', 'have')} zero trials and count{'s' * (empty.size == 1)} "
            f"as missing: {names}.",
            DataWarning,
        )
    if not has_trials.any():
        return response, None
    shares = np.flatnonzero(~has_trials & (response > 0.0) & (response < 1.0))
    warn_of_shares(source, pairs(shares), shares.size)
    is_known = has_trials & (trials >= 1.0) & (trials < MOST_TRIALS)
    counted = np.where(is_known, trials, 1.0).astype(np.int64)
    return response, np.where(np.isnan(response), 0, counted)


def warn_of_shares(source: str, names: Sequence[str], n_shares: int) -> None:
    """Warn of responses between 0 and 1 without a number of trials beside others that have one; `names` are the first.

    There may be none.
    """
    if n_shares:
        warn(
            f"{source}: {plural(n_shares, 'response')} between 0 and 1 without n_trials, which others have: each "
            f"counts as one trial: {first_few(names, n_shares)}. Give theirs, or read them apart.",
            DataWarning,
        )


def _lost(
    response: FloatArray,
    told: IntArray | None,
    trials: FloatArray | None,
    counted: FloatArray | None,
    problems: list[str],
) -> tuple[IntArray, IntArray] | None:
    """Count the lost attempts of each row, and tell their kind; None where none was lost.

    A row tells them by the kind of an error, or by their number. A row that has no response and tells nothing lost it
    for no reason that is known, unless it has zero trials.
    """
    if told is None and counted is None and not np.isnan(response).any():
        return None
    kind = np.zeros(response.shape, dtype=np.int64) if told is None else told
    each = np.ones(response.shape) if trials is None else np.clip(np.nan_to_num(trials, nan=1.0), 1.0, MOST_TRIALS)
    n = np.where(kind > 0, each, 0.0).astype(np.int64)
    if counted is not None:
        bad = ~(np.isnan(counted) | ((counted >= 0.0) & (counted == np.floor(counted)) & (counted < MOST_TRIALS)))
        if bad.any():
            problems.append(
                f"n_errors must be a whole number of at least 0, got {plural(int(bad.sum()), 'row')} with another."
            )
            return None
        n = np.nan_to_num(counted).astype(np.int64)
        kind = np.where(n == 0, 0, np.where(kind == 0, ERROR, kind))
    else:
        is_silent = np.isnan(response) & (kind == 0) & (True if trials is None else trials != 0.0)
        n, kind = np.where(is_silent, each, n).astype(np.int64), np.where(is_silent, NO_ANSWER, kind)
    return (n, kind) if n.any() else None


MOST_MARKS = 10.0
"""Marks beyond are percentages and the like, of which some are more than 1 unless all are 0."""


def warn_of_scales(responses: FloatArray, highest: float, names: Sequence[pl.Series], source: str) -> None:
    """Warn of models, and scenarios, whose responses were shares before they were divided by `highest`, unlike others'.

    Responses are (n_models, n_items); `names` those of each model, and the scenario and the name of each item.
    """
    for place, name in enumerate(names if highest > MOST_MARKS else ()):
        tops = np.fmax.reduce(responses, axis=0 if place else 1) * highest
        is_known = ~np.isnan(tops)
        far, near = _far_and_near(tops[is_known], name.filter(is_known), ())
        if near:
            warn(
                f"{source}: no response of {shown(near)} is more than 1 of {highest:g}, and some of {shown(far)} are. "
                f"If the former were shares of 1, multiply them by {highest:g} in the file, or import them apart.",
                DataWarning,
            )
        if near and place:  # of items of these scenarios nothing more is to be said
            break


Alone = Callable[[str], Mapping[str, Any]]
"""Choices of a `ReadingSpec` by which one scenario is read without the others."""


def row_problems(
    rows: ResponseRows,
    *,
    max_response: float = 1.0,
    has_marks: bool = False,
    scenario: pl.Series | None = None,
    alone: Alone | None = None,
) -> list[str]:
    """Say what is wrong with the numbers of these rows; with `has_marks` one may stand for a missing response.

    What is on one scale is that of one `scenario`, (n_rows,): the rows' own unless given, as the metric where there are
    several. `alone` is None where it cannot be read without the others.
    """
    problems, response = [], rows.response
    with np.errstate(invalid="ignore"):
        outside = np.flatnonzero((response < 0.0) | (response > 1.0))
    if outside.size:
        n_models = rows.frame["model_id"][outside].n_unique()
        divided = "" if max_response == 1.0 else f" after division by {max_response:g}"
        given = np.flatnonzero(~np.isnan(response))
        names, marks = (
            (_scenarios(rows) if scenario is None else scenario).gather(given),
            response[given] * max_response,
        )
        models = rows.frame["model_id"].gather(given).cast(pl.String)
        if marks.max() > MOST_MARKS and not _far_and_near(marks, names, ())[1] and _far_and_near(marks, models, ())[1]:
            names, alone = models, None
        advice = range_advice(marks, names, has_marks=has_marks, alone=alone)
        problems.append(
            f"response must lie in [0, 1]{divided}, got {plural(outside.size, 'value')} outside for {n_models} of "
            f"{rows.models.height} models: {rows.describe(outside)}. {advice}"
        )
    for unit in rows.costs:
        bad = ((rows.frame[unit] < 0.0) | rows.frame[unit].is_infinite()).arg_true().to_numpy()
        if bad.size:
            problems.append(
                f"{unit} must be a finite number of at least 0, got {rows.frame[unit][int(bad[0])]:g} and the like for "
                f"{plural(bad.size, 'row')}: {first_few(named(rows.frame, bad), bad.size)}."
            )
    return problems


def _scenarios(rows: ResponseRows) -> pl.Series:
    """Scenario of each row."""
    if "scenario" not in rows.items.columns:
        return pl.repeat(DEFAULT_SCENARIO, rows.n_rows, eager=True)
    names = rows.items["scenario"].cast(pl.String).fill_null(DEFAULT_SCENARIO)
    return names.gather(numbered(rows.frame["item_id"], rows.items["item_id"]))


NINES = {9.0: 5.0, 99.0: 10.0, 999.0: 100.0, 9999.0: 100.0}
"""Numbers that often stand for a missing answer, each with the most that all others are then."""


def range_advice(
    values: FloatArray,
    scenario: pl.Series | None = None,
    *,
    has_marks: bool,
    only: Mapping[str, Any] | None = None,
    alone: Alone | None = None,
) -> str:
    """Say what responses, (n_values,), of which some lie outside [0, 1], may be.

    With `has_marks` some of them may stand for a missing answer. What is advised divides no scenario, (n_values,), that
    lies in [0, 1] already. `only` are choices by which nothing but these responses is read.
    """
    with np.errstate(over="ignore"):
        values = np.round(values, 9)
    kinds = np.unique(values)
    if kinds.tolist() in ([-1.0, 1.0], [1.0, 2.0]):
        wrong, right = (f"{one:g}" for one in kinds.tolist())
        return f"If {right} is right and {wrong} is wrong, add: {how(true_value=right)}"
    marks = _marks(kinds) if has_marks else []
    far, near = ([], []) if scenario is None else _far_and_near(values, scenario, marks)
    rest = kinds[~np.isin(kinds, marks)]
    if marks:
        scale = 0.0 if near or not rest.size else _scale(rest)  # what divides some is said when the marks are gone
        names = tuple(repr(one).removesuffix(".0") for one in marks)
        choices = {"missing_values": names, **({"max_response": scale} if scale else {})}
        are = f"{names[0]} marks an answer that is" if len(names) == 1 else f"{shown(names)} mark answers that are"
        ends = f" and the others end at {scale:g}" if scale else ""
        return f"If {are} missing{ends}, add: {how(**choices)}"
    low, top = float(rest[0]), float(rest[-1])
    if low < 0.0 or not np.isfinite(top):
        return "Responses must run from 0, the worst, to 1, the best: rescale them in the file."
    largest = f"The largest is {top:.9g}."
    if near and scenario is not None:
        return f"{largest} {_advice_apart(np.unique(values[scenario.is_in(far).to_numpy()]), far, near, alone)}"
    scale = _scale(rest)
    if not scale:
        these = how(**only) if only else ""
        highest = remedy(f"{these}{', ' * bool(these)}max_response=...", f"{these} --max-response HIGHEST".lstrip())
        return f"{largest} To divide by the highest that a response can be, 100 for percentages, add: {highest}"
    are = "these are percentages" if scale == 100.0 else f"marks end at {scale:g}"
    has_lowest = low > 0.0 and scale != 100.0
    lowest = f". The lowest mark, {low:g}, is then {low / scale:g} and not 0." if has_lowest else ""
    return f"{largest} If {are}, add: {how(**(only or {}), max_response=scale)}{lowest}"


def _far_and_near(values: FloatArray, scenario: pl.Series, marks: Sequence[float]) -> tuple[list[str], list[str]]:
    """Scenarios with values beyond 1, and those whose values end between 0 and 1, but for marks."""
    table = pl.DataFrame({"name": scenario, "value": values}).filter(~pl.col("value").is_in(marks))
    tops = table.group_by("name", maintain_order=True).agg(pl.col("value").max())
    is_far, is_near = pl.col("value") > 1.0, pl.col("value").is_between(0.0, 1.0, closed="right")
    far, near = (tops.filter(one)["name"].to_list() for one in (is_far, is_near))
    return far, near if far else []


def _advice_apart(kinds: FloatArray, far: Sequence[str], near: Sequence[str], alone: Alone | None) -> str:
    """Say how scenarios are read of which some, whose values are (n_kinds,) in order, are on another scale."""
    told = f"Only {shown(far)} goes beyond 1, and what divides all would shrink {shown(near)}."
    scale = _scale(kinds)
    if not scale:
        return f"{told} Divide the former in the file, by the highest that they can be."
    told += " If the former are percentages" if scale == 100.0 else f" If marks of the former end at {scale:g}"
    if alone is None or len(far) > 1:
        return f"{told}, divide them by {scale:g} in the file."
    way = how(**alone(far[0]), max_response=scale)
    return f"{told}, divide them by {scale:g} in the file, or read each by itself; for {shown(far)} add: {way}"


def _marks(kinds: FloatArray) -> list[float]:
    """Return the values of these, (n_kinds,) in order, that probably stand for a missing answer."""
    negative, rest = kinds[kinds < 0.0], kinds[kinds >= 0.0]
    if negative.size and (rest.size or kinds.tolist() == [-1.0]):
        are_few = negative.size == 1 or (negative.size <= 3 and rest[-1] <= 1.0)
        are_codes = are_few and bool((negative == np.floor(negative)).all())
        return [float(one) for one in negative] if are_codes else []
    if negative.size or kinds.size == 1:
        return []
    top, others = float(kinds[-1]), kinds[:-1]
    if others.tolist() == [0.0, 1.0] and top > 5.0 and top not in {10.0, 100.0}:
        return [top]
    if top not in NINES or others[-1] > NINES[top] or not _are_marks(others):
        return []
    has_gap = top > 10.0 or (others[0] == 0.0 and others[-1] <= 1.0)
    is_whole = others.size > 1 and others.size == others[-1] - others[0] + 1.0  # 1 to 5: then 9 is none of ten
    return [top] if has_gap or is_whole else []


def _scale(kinds: FloatArray) -> float:
    """Return what responses, (n_kinds,) in order, are to be divided by; 0 where they lie in [0, 1] or do not tell."""
    low, top = float(kinds[0]), float(kinds[-1])
    if low < 0.0 or top <= 1.0 or not np.isfinite(top):
        return 0.0
    are_marks = _are_marks(kinds)
    # marks up to five end at the largest that was given, those above seven at ten; six and seven may be either
    if are_marks and top <= 5.0:
        return float(np.ceil(top))
    if are_marks and 7.0 < top <= 10.0:
        return 10.0
    return 100.0 if 10.0 < top <= 100.0 and (top > 50.0 or not are_marks) else 0.0


def _are_marks(kinds: FloatArray) -> bool:
    """Whether these are whole or half numbers."""
    return bool((2.0 * kinds == np.floor(2.0 * kinds)).all())


def can_be_counted(responses: FloatArray) -> bool:
    """Whether responses, (n_rows,), are right or wrong."""
    return bool(np.isin(responses, (0.0, 1.0)).all())


POOLED: tuple[Repeats, ...] = ("count", "mean")
SPREAD = "\0spread"
"""Column of settled rows: the variance of the attempts that a response is the mean of."""


def settle_repeats(rows: ResponseRows, cell: IntArray, n_cells: int, repeats: Repeats) -> pl.DataFrame:
    """Leave one response a cell; return the rows that stay, with their `cell`.

    Copies (equal responses, of the same attempt where attempts are known) count once, with a `DataWarning`. Repeated
    attempts (several named ones; or, with 'count' and 'mean', any rows without a name) are counted, averaged, or the
    last is taken, when `repeats` says so. Counting makes every response a number of successes among trials.
    """
    if repeats == "count":
        rows = _as_counts(rows)
    frame = rows.frame.with_columns(cell=pl.Series(cell))
    is_present = ~np.isnan(rows.response)
    is_repeated = come_again(cell, n_cells, is_present)
    if is_present.all() and not is_repeated.any():
        return frame
    is_answered = np.zeros(n_cells, dtype=bool)
    is_answered[cell[is_present]] = True
    # rows with a response stand alone, and rows that tell a cost of a cell without one
    told = [pl.col(unit).is_not_nan() for unit in rows.costs]
    told += [pl.col("n_trials") != 0] if "n_trials" in frame.columns else []
    tells_more = frame.select(pl.any_horizontal(pl.lit(value=False), *told)).to_series().to_numpy()
    alone = frame[np.flatnonzero(~is_repeated & (is_present | (tells_more & ~is_answered[cell])))]
    if not is_repeated.any():
        return alone
    repeated = frame[np.flatnonzero(is_repeated)]
    if repeats == "last":
        return pl.concat([alone, repeated.unique("cell", keep="last", maintain_order=True)])
    single = _without_copies(rows.source, repeated, keep_nameless=repeats in POOLED)
    is_again = single["cell"].is_duplicated()
    again, done = single.filter(is_again), single.filter(~is_again)
    if again.height:
        _refuse(rows.source, again, repeats)
        done = pl.concat([done, _means(again, rows.costs)], how="diagonal")
    settled = pl.concat([alone, done], how="diagonal")
    if "n_trials" not in settled.columns:
        return settled
    return settled.with_columns(pl.col("n_trials").fill_null(pl.col("response").is_not_nan().cast(pl.Int64)))


def _as_counts(rows: ResponseRows) -> ResponseRows:
    """Make every response successes / trials; `DataError` names those that are no such ratio."""
    present = ~np.isnan(rows.response)
    trials = rows.frame["n_trials"].to_numpy() if "n_trials" in rows.frame.columns else present.astype(np.int64)
    at_least_one = np.maximum(trials, 1)
    bad = present & ~is_count(rows.response, at_least_one)
    if bad.any():
        where = np.flatnonzero(bad)
        is_mean = bool((at_least_one[where] > 1).all())
        mean = remedy("repeats='mean'", "itembank import --repeats mean")
        advice = f"leave out {remedy('repeats', '--repeats')}" if is_mean else f"for their mean: {mean}"
        raise DataError(
            f"{rows.source}: responses that are counted must be right or wrong (1 or 0), or n_correct of n_trials, got "
            f"{plural(where.size, 'other')}: {rows.describe(where)}. Scores between 0 and 1 are no counts, and have no "
            f"pass^k: {advice}"
        )
    response = pl.Series(np.rint(rows.response * at_least_one) / at_least_one)
    n_trials = pl.Series(np.where(present, at_least_one, trials))
    return replace(rows, frame=rows.frame.with_columns(response=response, n_trials=n_trials))


def _without_copies(source: str, repeated: pl.DataFrame, *, keep_nameless: bool) -> pl.DataFrame:
    """Leave the first of equal rows of one cell and attempt, and warn of the others; a row unlike it stays.

    Where attempts are pooled (`keep_nameless`), only rows of one name are copies.
    """
    same = 1e-6  # files of the same results in float32 and as text differ by 6e-8
    group = [name for name in ("cell", "attempt") if name in repeated.columns]
    is_copy = (pl.col("response") - pl.col("response").first().over(group)).abs() <= same
    is_copy &= pl.int_range(pl.len()).over(group) > 0
    if "n_trials" in repeated.columns:
        is_copy &= pl.col("n_trials") == pl.col("n_trials").first().over(group)
    if keep_nameless:
        is_copy &= pl.col("attempt").is_not_null() if "attempt" in repeated.columns else pl.lit(value=False)
    kept = repeated.filter(~is_copy)
    if n_copies := repeated.height - kept.height:
        add = how(repeats="count" if can_be_counted(repeated["response"].to_numpy()) else "mean")
        warn(
            f"{source}: {plural(n_copies, 'row', 'repeat')} an earlier row of the same model and "
            f"item{' and seed' * keep_nameless} with the same response; they count once. If they are repeated "
            f"attempts, {'give each a seed of its own.' if keep_nameless else f'add: {add}'}",
            DataWarning,
        )
    return kept


def _refuse(source: str, again: pl.DataFrame, repeats: Repeats) -> None:
    """Raise `DataError` for contradictions, and for repeated attempts that nobody asked to average."""
    attempt = pl.col("attempt") if "attempt" in again.columns else pl.lit(None, dtype=pl.String)
    table = again.with_columns(attempt=attempt.cast(pl.String))
    is_attempt = (pl.col("attempt").null_count() == 0) & (pl.col("attempt").n_unique() == pl.len())
    # Averaging may be asked for where attempts have no names, but never of two answers of one attempt.
    is_attempt = is_attempt.over("cell")
    attempts, others = table.filter(is_attempt), table.filter(~is_attempt)
    if repeats in POOLED:
        attempts, others = attempts.clear(), others.filter(pl.col("attempt").is_not_null().any().over("cell"))
    right = again["response"] * (again["n_trials"] if "n_trials" in again.columns else 1)
    are_counts = bool(((right - right.round()).abs() <= 1e-6).all())
    count = f"to count them add: {how(repeats='count')}, or " if are_counts else ""
    advice = f"{count}for their mean add: {how(repeats='mean')}, or for the last one add: {how(repeats='last')}"
    problems = []
    if others.height:
        problems.append(
            f"one model must have one response to an item, got different ones for {_cells(others)}. "
            + (
                "They even have the same seed, or only some have a seed; correct the table."
                if repeats in POOLED
                else f"Correct the table; or, if they are repeated attempts, {advice}."
            )
        )
    if attempts.height:
        problems.append(
            f"one model must have one response to an item, got repeated attempts (several seeds) for "
            f"{_cells(attempts)}. They are never averaged unasked; {advice}."
        )
    if problems and ", " in source:
        apart = how(jq=". + {scenario: $stem}", prefix_scenario=True)
        problems.append(f"\nIf ids start anew in each file, which is a task, add: {apart}")
    if problems:
        raise DataError(f"{source}: " + " ".join(problems))


def _cells(rows: pl.DataFrame) -> str:
    """Name the first few cells with all their responses."""
    groups = rows.group_by("cell", maintain_order=True).agg(pl.col("model_id", "item_id").first(), "response")
    parts = []
    for model, item, responses in groups.head(N_SHOWN).select("model_id", "item_id", "response").iter_rows():
        values = " and ".join(f"{value:g}" for value in responses[:3])
        more = f" and {len(responses) - 3} more" if len(responses) > 3 else ""
        parts.append(f"{model!r} item {item!r} = {values}{more}")
    return f"{plural(groups.height, 'pair')}: {first_few(parts, groups.height)}"


def _means(again: pl.DataFrame, costs: Sequence[str]) -> pl.DataFrame:
    """Average the rows of each cell: responses over all trials, costs over rows (the cost of one attempt).

    `SPREAD` is how much the attempts of a cell vary.
    """
    trials = again["n_trials"].clip(1).to_numpy() if "n_trials" in again.columns else np.ones(again.height)
    cells, group = np.unique(again["cell"].to_numpy(), return_inverse=True)

    def total(values: FloatArray) -> FloatArray:
        result: FloatArray = np.bincount(group, weights=values, minlength=cells.size).astype(np.float64)
        return result

    n_trials = total(trials)
    means = {"response": total(trials * again["response"].to_numpy()) / n_trials}
    for unit in costs:
        cost = again[unit].to_numpy()
        known = ~np.isnan(cost)
        count, none = total(known.astype(np.float64)), np.full(cells.size, np.nan)
        means[unit] = np.divide(total(np.where(known, cost, 0.0)), count, out=none, where=count > 0)
    deviations = total(trials * (again["response"].to_numpy() - means["response"][group]) ** 2)
    # unbiased where each row is one attempt
    is_single = total(np.ones(again.height)) == n_trials
    means[SPREAD] = np.where(is_single, deviations / np.maximum(n_trials - 1.0, 1.0), np.nan)
    return pl.DataFrame({"cell": cells, "n_trials": n_trials.astype(np.int64), **means})


def lost_of_cells(rows: ResponseRows, cell: IntArray, shape: tuple[int, int], repeats: Repeats) -> LostAnswers | None:
    """Count the lost attempts of each cell, (n_models, n_items); None where there are none.

    Where attempts are counted or averaged, each that was lost counts, unless the same one (by its name) was answered in
    another row. Else a cell is one attempt: what a later or an earlier row answered was not lost.
    """
    if "n_errors" not in rows.frame.columns or not (rows.frame["n_errors"] > 0).any():
        return None
    attempt, is_named = pl.lit(0, dtype=pl.Int64), "attempt" in rows.frame.columns
    if repeats in POOLED:  # without a name each row is an attempt
        own = -1 - pl.int_range(pl.len(), dtype=pl.Int64)
        attempt = pl.coalesce(pl.col("attempt").to_physical().cast(pl.Int64), own) if is_named else own
    is_answered = pl.col("response").is_not_nan()
    table = rows.frame.select("n_errors", "error", cell=pl.Series(cell), attempt=attempt, is_answered=is_answered)
    one = ["cell", "attempt"]
    table = table.filter(pl.col("is_answered") | ~pl.col("is_answered").any().over(one))
    attempts = table.group_by(one, maintain_order=True).agg(pl.col("n_errors", "error").max())
    of_cell = pl.when(pl.col("error").n_unique() > 1).then(ERROR).otherwise(pl.col("error").max()).alias("error")
    found = attempts.filter(pl.col("n_errors") > 0).group_by("cell").agg(pl.col("n_errors").sum(), of_cell)
    if not found.height:
        return None
    places = found["cell"].to_numpy()
    n, kind = (scattered(places, found[name].to_numpy(), shape, 0) for name in ("n_errors", "error"))
    return LostAnswers(n, kind)


def scattered(
    cell: IntArray, values: FloatArray | IntArray, shape: tuple[int, int], empty: float = np.nan
) -> np.ndarray[Any, Any]:
    """Put the values of some cells into a matrix, of float64 where the others are NaN."""
    flat = np.full(shape[0] * shape[1], empty)
    flat[cell] = values
    return flat.reshape(shape)
