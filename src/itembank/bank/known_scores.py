"""Full scores of past models: which are known, and those that replace the overall one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl
import scipy

from itembank.checks import check_names
from itembank.errors import DataError, IntegrityError, ParameterError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.ties import RELATIVE
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import EXTERNAL, OVERALL, WIN_RATE
from itembank.responses.targets import ScoreTargets, mean_win_rate
from itembank.tabular import Compact

ENOUGH = 10
"""Models that are enough for cross-validation."""


@dataclass(frozen=True, slots=True)
class KnownScores:
    """Full scores of n_models past models on n_targets targets, as far as they are known.

    A model that answered 60 of 1,500 items has no known score: the mean of these is off by more than an estimate that
    it would have to judge. Its answers still count for item parameters. A score may be known in one scenario
    and not in another. Items of a scenario that were not answered count as the item model expects, and as missing at
    random without one.

    A score is known from answers to four fifths of its items, by their weight. The mean of a random fraction f of N
    items has the sampling variance ``(1 - f) / f`` in units of ``S^2 / N``. From four fifths it is 1/4; a random fifth
    has 4, sixteen times as much, and an estimate from a fifth of the items about 1. Estimates rest on answers that make
    the known score, and err against it less than against the full one by as much: `variance` is added to the squared
    errors that are measured. A model that answered fewer items would answer too few of those chosen for a trial,
    besides. Where fewer than `ENOUGH` models answered four fifths, half is enough.
    """

    # (n_models, n_targets): Mean of the answered items, with the weights of the target; NaN where it is not known.
    # Targets are `ScoreTargets.names`.
    value: FloatArray
    # (n_models, n_targets): Of the value about the full score, for items drawn without replacement: 0 where all were
    # answered, NaN where the score is not known.
    variance: FloatArray

    @classmethod
    def of(
        cls, responses: ResponseMatrix, targets: ScoreTargets, expected: Callable[[int, int], FloatArray] | None = None
    ) -> Self:
        """Decide which scores are known, from raw responses.

        `expected` gives the item model's expectations of a run of models, (n_rows, n_items): items that came after some
        models may be harder than others, so that means are of responses less expectations.
        """
        parts, first = [], 0
        for part in responses.parts():
            fraction, values = fraction_answered(part.responses, targets), part.responses
            observed = targets.scenario_means(values, missing=True)
            first += part.n_models
            if expected is not None and np.any((fraction > 0.0) & (fraction < 1.0)):
                likely = expected(first - part.n_models, first)
                values = values - likely
                adjusted = targets.scenario_means(values, missing=True) + targets.scenario_means(likely)
                observed = np.where(fraction < 1.0, np.clip(adjusted, 0.0, 1.0), observed)
            parts.append((observed, fraction, sampling_variance(values, targets, fraction)))
        observed, fraction, variance = (np.concatenate(column) for column in zip(*parts, strict=True))
        fraction = fraction + RELATIVE  # four of five items are four fifths, whatever their weights add up to
        well = fraction >= 0.8
        is_answered = np.where(well.sum(axis=0) >= ENOUGH, well, fraction >= 0.5)
        is_known = is_answered & ~np.isnan(variance)
        unknown = np.where(is_known, 0.0, np.nan)
        # NaN plus anything is NaN, and a scenario that weighs nothing in the overall score cannot spoil it
        weighing = targets.scenario_weights > 0.0
        of_overall = unknown[:, weighing].sum(axis=1)
        value = targets.with_overall(np.where(np.isnan(observed), 0.0, observed))
        squares = np.where(is_known, variance, 0.0) @ targets.scenario_weights**2
        missing = np.column_stack([unknown, of_overall])
        return cls(value + missing, np.column_stack([np.where(is_known, variance, 0.0), squares]) + missing)

    @property
    def is_known(self) -> BoolArray:
        """Whether each score is known, (n_models, n_targets)."""
        return ~np.isnan(self.value)

    @property
    def models(self) -> IntArray:
        """Models with any known score, (n_known,), rising: these can be left out to see how estimates do."""
        return np.flatnonzero(self.is_known.any(axis=1))


def fraction_answered(responses: FloatArray, targets: ScoreTargets) -> FloatArray:
    """Weight of the answered items in each scenario's score, (n_models, n_scenarios), one where all were answered."""
    missing = np.isnan(responses)
    is_whole = np.ones((responses.shape[0], targets.n_scenarios), dtype=bool)
    rows, items = np.nonzero(missing & (targets.weights != 0.0))
    is_whole[rows, targets.scenario_index[items]] = False
    if is_whole.all():
        return np.ones(is_whole.shape)
    return np.where(is_whole, 1.0, targets.scenario_means((~missing).astype(np.float64)))


def response_slopes(
    responses: ResponseMatrix, targets: ScoreTargets, expected: Callable[[int, int], FloatArray]
) -> FloatArray:
    """Rise of responses with what an item model expects, by least squares over all answers of a scenario, (n_items,).

    Of an item model of answers above or below a threshold, which are nearer to 0 and 1 than the responses.
    """
    index, n, first = targets.scenario_index, targets.n_scenarios, 0
    sums = np.zeros((5, n))
    for part in responses.parts():
        seen = ~np.isnan(part.responses)
        x, y = np.where(seen, expected(first, first + part.n_models), 0.0), np.where(seen, part.responses, 0.0)
        first += part.n_models
        sums += [np.bincount(index, one.sum(axis=0), minlength=n) for one in (seen, x, y, x * x, x * y)]
    count, of_x, of_y, squares, products = sums
    spread = count * squares - of_x**2
    slopes = np.divide(count * products - of_x * of_y, spread, out=np.ones(n), where=spread > 1e-9 * count**2)
    return slopes[index]


def sampling_variance(responses: FloatArray, targets: ScoreTargets, fraction: FloatArray | None = None) -> FloatArray:
    """Variance of each model's observed scenario mean about its full score, (n_models, n_scenarios).

    ``(1 - f) S^2 sum a^2`` with f the weight of the answered items in the score, a their weights scaled to sum to one,
    and ``S^2 = sum a (y - ybar)^2 / (1 - sum a^2)``: for equal weights ``(1 - n / N) S^2 / n`` (Cochran 1977, eq.
    2.12). 0 where all were answered; NaN where fewer than two were, of more. `fraction` is `fraction_answered`, where
    that is known already.
    """
    fraction = fraction_answered(responses, targets) if fraction is None else fraction
    is_whole = fraction == 1.0
    result = np.where(is_whole, 0.0, np.nan)
    for scenario in np.flatnonzero(~is_whole.all(axis=0)).tolist():
        items = np.flatnonzero(targets.scenario_index == scenario)
        rows = np.flatnonzero(~is_whole[:, scenario])
        answers = responses[np.ix_(rows, items)]
        seen = ~np.isnan(answers)
        shares = seen * targets.weights[items]
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        filled = np.where(seen, answers, 0.0)
        squares = np.sum(shares**2, axis=1)
        spread = np.sum(shares * (filled - np.sum(shares * filled, axis=1, keepdims=True)) ** 2, axis=1)
        freedom = 1.0 - squares
        is_enough = (freedom > 1e-9) & (squares > 0.0)  # two answers at least
        of_mean = np.divide(spread * squares, freedom, out=np.full(spread.shape, np.nan), where=is_enough)
        result[rows, scenario] = (1.0 - fraction[rows, scenario]) * of_mean
    return result


@dataclass(frozen=True, slots=True, repr=False)
class Headline(Compact):
    """A score of whole models that the items of a bank do not add up to."""

    name: str  # 'mean_win_rate', or that of an external score
    past: FloatArray  # (n_models,): Of the past models, from 0 to 1; NaN where not known
    # (n_models, n_scenarios): Of a win rate, scenario scores of the past models that others are ranked against;
    # rows of NaN are not. None of an external score, which the bank knows of past models and of no others.
    reference: FloatArray | None = None
    gaps: FloatArray | None = None  # (n_models, n_scenarios): Variances of the reference, whose answers may have gaps

    def without(self, rows: Sequence[int]) -> "Headline":
        """Rank models against none of the past models at these rows."""
        if self.reference is None or not len(rows):
            return self
        reference = self.reference.copy()
        reference[list(rows)] = np.nan
        return replace(self, reference=reference)

    @property
    def follows_answers(self) -> bool:
        """Whether answers to all items give it."""
        return self.reference is not None

    @property
    def in_words(self) -> str:
        """What the score is."""
        n_known = int((~np.isnan(self.past)).sum())
        if self.follows_answers:
            return (
                f"the mean win rate is the share of the {n_known} past models whose scenario score is lower, ties "
                "counting half, averaged over scenarios"
            )
        return f"the score {self.name!r} is known of {n_known} past models, and learnt from these"

    def win_rates(self, scenario_scores: FloatArray) -> FloatArray:
        """Mean win rates of exact scenario scores (n_new, n_scenarios), (n_new,); NaN of an external score.

        NaN, too, of a model without a score in some scenario.
        """
        unknown = np.isnan(scenario_scores).any(axis=1)
        if self.reference is None or unknown.all():
            return np.full(scenario_scores.shape[0], np.nan)
        return np.where(unknown, np.nan, self._rated(np.nan_to_num(scenario_scores))[0])

    def variance_by_rivals(self, scenario_scores: FloatArray) -> FloatArray:
        """Variance of mean win rates at scenario scores (n_new, n_scenarios) by gaps in rivals' answers, (n_new,)."""
        return self._rated(scenario_scores)[1]

    def _rated(self, scenario_scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.reference is None:
            return np.zeros(len(scenario_scores)), np.zeros(len(scenario_scores))
        rows = ~np.isnan(self.reference).any(axis=1)
        gaps = np.zeros(self.reference.shape) if self.gaps is None else self.gaps
        return _win_rates(scenario_scores, np.zeros(scenario_scores.shape), self.reference[rows], gaps[rows])


def _win_rates(
    scores: FloatArray,  # (n_models, n_scenarios): x and the variance u up to which it is known
    own: FloatArray,  # (n_models, n_scenarios)
    reference: FloatArray,  # (n_reference, n_scenarios): r and v
    gaps: FloatArray,  # (n_reference, n_scenarios)
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of mean win rates, (n_models,) each; ties count half.

    Each rival is beaten by itself, with the chance ``P = Phi((x - r) / sqrt(u + v))``. To count known scores errs by a
    third more: they are between those that full scores can have, and never tie.
    """
    if not (own.any() or gaps.any()):
        return mean_win_rate(scores, reference), np.zeros(len(scores))
    mean, variance = np.zeros((2, len(scores)))
    for x, u, r, v in zip(scores.T, own.T, reference.T, gaps.T, strict=True):
        size = np.sqrt(u[:, None] + v)
        beaten = scipy.special.ndtr((x[:, None] - r) / np.maximum(size, 1e-9))  # rounding makes no difference
        mean += beaten.mean(axis=1) / len(scores.T)
        variance += (beaten * (1.0 - beaten) * (size > 0.0)).sum(axis=1) / reference.size**2
    return mean, variance


def win_rate_headline(scenario_scores: FloatArray, gaps: FloatArray) -> Headline:
    """Return the mean win rate among past models of scores known up to variances, (n_models, n_scenarios) each.

    Each model's own is against all others: with itself among n, which counts as a tie, the rate would be
    ``((n - 1) W + 1/2) / n``.
    """
    is_known = np.asarray(~np.isnan(scenario_scores).any(axis=1))
    n_known = int(is_known.sum())
    _check_enough(WIN_RATE, n_known, "scores in all scenarios are known")
    reference = np.where(is_known[:, None], scenario_scores, np.nan)
    past = np.full(is_known.size, np.nan)
    known = scenario_scores[is_known], gaps[is_known]
    with_itself, _ = _win_rates(*known, *known)
    past[is_known] = (n_known * with_itself - 0.5) / (n_known - 1)
    return Headline(WIN_RATE, past, reference, gaps)


def external_headline(models: pl.DataFrame, name: str, can_be_tried: FloatArray) -> Headline:
    """Return the external score of this name, which a bank's model table keeps.

    A model whose overall score is unknown (`can_be_tried` (n_models,)) answered too little, and teaches nothing.
    """
    column = models[f"{EXTERNAL}{name}"]
    values = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    if not column.dtype.is_numeric() or np.any((values < 0.0) | (values > 1.0)):
        raise IntegrityError(
            f"the bank's external score {name!r} must hold numbers from 0 to 1, and holds others: something else than "
            "itembank wrote it. Get the bank from another place, or add the scores again."
        )
    past = np.where(np.isnan(can_be_tried), np.nan, values)
    _check_enough(name, int((~np.isnan(past)).sum()), "external score is known, and who answered enough of its items")
    return Headline(name, past)


def external_names(models: pl.DataFrame) -> tuple[str, ...]:
    """Names of the external scores that a bank's model table keeps."""
    return tuple(name.removeprefix(EXTERNAL) for name in models.columns if name.startswith(EXTERNAL))


def with_external_scores(models: pl.DataFrame, table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Add external scores to a model table, as fractions of one.

    A column with a number above 1 is taken to hold points (hundredths).
    """
    absent = [name for name in ("model_id", *names) if name not in table.columns]
    if absent:
        raise DataError(
            f"a table of external scores must have the columns model_id and {shown(list(names))}, got no "
            f"{shown(absent)}; there are {shown(table.columns)}.{did_you_mean(absent, table.columns)}"
        )
    twice = table.filter(table["model_id"].is_duplicated())["model_id"].unique(maintain_order=True).to_list()
    if twice:
        raise DataError(f"a table of external scores must have one line a model, got more for {shown(twice)}.")
    scores = table.select("model_id", **{f"{EXTERNAL}{name}": _fractions(table[name], name) for name in names})
    scores = scores.with_columns(pl.col("model_id").cast(pl.String))
    known = set(models["model_id"].to_list())
    if not known & set(scores["model_id"].to_list()):
        raise DataError(
            f"external scores must be of past models of the bank, {shown(models['model_id'].to_list())}, got those of "
            f"{shown(scores['model_id'].to_list())}. Check that both name models alike."
        )
    kept = models[[column for column in models.columns if column not in scores.columns or column == "model_id"]]
    order = kept.with_columns(pl.col("model_id").cast(pl.String))
    return order.join(scores, on="model_id", how="left", maintain_order="left")


def check_external_names(names: Sequence[str], scenarios: Sequence[str]) -> None:
    """Refuse names of external scores that a bank's own scores have, and patterns."""
    check_names("external scores", names)
    taken = [name for name in names if name in (*scenarios, OVERALL, WIN_RATE, "all")]
    if taken:
        raise ParameterError(
            f"an external score needs a name of its own, got {shown(taken)}, which the bank's items make. Rename the "
            "column."
        )


def _fractions(column: pl.Series, name: str) -> pl.Series:
    """Return scores from 0 to 1."""
    numbers = column.cast(pl.Float64, strict=False).fill_nan(None)
    known = column.is_not_null()
    if column.dtype.is_float():
        known &= column.is_not_nan().fill_null(False)
    bad = (numbers.is_null() & known) | ~numbers.fill_null(0.0).is_between(0.0, 100.0)
    if bad.any():
        raise DataError(
            f"the external score {name!r} must hold numbers from 0 to 1, or points up to 100, got "
            f"{shown([str(value) for value in column.filter(bad).to_list()])}. Leave unknown ones empty."
        )
    largest = numbers.max()
    is_in_points = isinstance(largest, float) and largest > 1.0
    return numbers / 100.0 if is_in_points else numbers


def _check_enough(name: str, n_known: int, what: str) -> None:
    if n_known < ENOUGH:
        raise DataError(
            f"the score {name!r} needs at least {ENOUGH} past models whose {what}, got {n_known}: their "
            "cross-validated errors give its intervals. Add models to the bank."
        )
