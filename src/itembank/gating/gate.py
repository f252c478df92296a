"""The verb `gate`: whether a candidate is as good as a baseline, to within a margin."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from itembank.checks import with_choices
from itembank.errors import OF_LEVEL, DataError, DataWarning, ParameterError, remedy, says_instead, shown, unsaid
from itembank.estimation.estimator_specs import QUESTIONS, REPEATED, RUN, needs_repeats
from itembank.gating.gate_spec import GateSpec
from itembank.gating.lost import WAYS, check_one_model, counted, with_lost
from itembank.gating.results import TIE, FlippedItem, Gate, Look, ScenarioChange, Verdict
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import NORMAL
from itembank.numerics.looks import lower_bound, student_boundary, upper_bound
from itembank.numerics.paired import PairedLook, flips, paired_look, run_chance
from itembank.progress import ProgressCallback, silent
from itembank.readers.agreement import in_both, only_items, other_in
from itembank.responses.error_kinds import Errors
from itembank.responses.how_read import CONTENT, HowRead, check_read_alike
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural
from itembank.tabular import Fact

if TYPE_CHECKING:
    from itembank.bank.arguments import GivenBank, GivenResponses, GivenSelection
    from itembank.bank.banks import Bank
    from itembank.bank.selections import Selection

USUAL = GateSpec()


@says_instead(**OF_LEVEL | {"alpha": "false_alarm"}, beta="miss")
def gate(
    baseline: "GivenResponses",
    candidate: "GivenResponses",
    *,
    bank: "GivenBank | None" = None,
    selection: "GivenSelection | None" = None,
    probabilities: "tuple[GivenResponses, GivenResponses] | None" = None,
    allow_mixed_prompts: bool = False,
    spec: GateSpec = USUAL,
    progress: ProgressCallback = silent,
    **choices: Any,
) -> Gate:
    """Say whether a candidate is as good as a baseline, from existing results.

    The verdict is that of two one-sided tests: 'pass' if the drop is proved to be less than the margin, 'fail' if
    it is proved to be more than the tolerance and is the margin or more by the best estimate, else 'undecided'. To run
    no more items than it takes, see `start_gate`.

    Parameters
    ----------
    baseline, candidate : ResponseMatrix, path or paths
        Results of one model each. Items that the candidate did not answer count as not drawn: without a bank those it
        answered are taken as a random sample of the baseline's. What either side lost counts as `spec.errors` says.
    bank : Bank or path, optional
        Take the difference as `compare` does: from how the items of `selection` were drawn, or from past models.
    selection : Selection or path, optional
        Take only these items; without a bank the verdict is then about them alone.
    probabilities : pair of responses, optional
        Probabilities of the right options of both models (``read_responses(..., spec=ReadingSpec(response=
        "probability"))``), which tell more of the difference in accuracy than right and wrong do. Not with a bank.
    allow_mixed_prompts : bool
        Compare even if the two had different prompts: is the new prompt as good?
    spec : GateSpec
    progress : ProgressCallback
    **choices
        Fields of the spec by name: ``margin=0.02``.

    Raises
    ------
    DataError
        When either is not one model, they share no item, an item's content or prompt differs, or the candidate has
        items that the baseline has not.

    Examples
    --------
    >>> gate("runs/bf16", "runs/int8", margin=0.02).verdict  # doctest: +SKIP
    'pass'
    """
    spec = with_choices(spec, choices)
    known_bank = None
    if bank is not None:
        from itembank.bank.arguments import as_bank  # noqa: PLC0415 (two files need no bank, and load none)

        known_bank = as_bank(bank)
        spec = with_errors_of(known_bank, spec)
    runs, chosen = [as_responses(one, spec.errors) for one in (baseline, candidate)], None
    if selection is not None:
        from itembank.bank.arguments import as_selection  # noqa: PLC0415 (as above)

        chosen = as_selection(selection)
        if chosen is not None:
            runs = [only_items(one, chosen.item_ids)[0] for one in runs]
    if bank is not None and probabilities is not None:
        raise ParameterError("probabilities are a covariate of differences without a bank. Leave one of them out.")

    signs: list[str] = []
    notes: list[str] = []
    if known_bank is None:  # of what was run: lost answers are no choice of items
        run = GatePair.of(*counted(runs[0], runs[1], WAYS["wrong"]), allow_mixed_prompts=allow_mixed_prompts)
        signs, notes = _signs_of_choice(run)

    def judge(one: ResponseMatrix, other: ResponseMatrix) -> Gate:
        pair = GatePair.of(one, other, allow_mixed_prompts=allow_mixed_prompts)
        if known_bank is not None:
            return _by_comparison(pair, known_bank, chosen, spec, progress)
        known = None if probabilities is None else pair.aligned([as_responses(each) for each in probabilities])
        estimand = spec.estimand or QUESTIONS
        found = pair.look(estimand, probabilities=known, cluster=spec.cluster)
        boundaries = [-NORMAL.inv_cdf(error) for error in spec.error_rates]
        is_of_questions = estimand == QUESTIONS
        return verdict_of(
            pair,
            [look_of(found, pair.n_answered, boundaries)],
            spec,
            method="paired" if known is None else "probabilities",
            estimand=estimand,
            n_total=pair.n_baseline,
            ahead=looks_ahead(found, boundaries),
            baseline_score=float(pair.baseline[~np.isnan(pair.candidate)].mean()) if is_of_questions else np.nan,
            notes=[*signs, *notes],
        )

    found = with_lost(runs[0], runs[1], spec, judge)
    if signs and found.verdict != "undecided" and not _holds_for_all(found, *runs):
        return replace(found, verdict="undecided", is_chosen=True)
    return found


def _holds_for_all(found: Gate, baseline: ResponseMatrix, candidate: ResponseMatrix) -> bool:
    """Whether a verdict is the same if all that the candidate did not run is wrong, and if all is right.

    Such a verdict needs no random sample. Lost answers are right in the second case, unless they count as wrong.
    """
    spec, is_finite = found.spec, found.estimand != QUESTIONS
    boundaries = [-NORMAL.inv_cdf(error) for error in spec.error_rates]
    best = "wrong" if found.lost is None or found.lost.errors == "wrong" else "best"
    for way, rest in (("wrong", 0.0), (best, 1.0)):
        pair = GatePair.of(*counted(baseline, candidate, WAYS[way]), allow_mixed_prompts=True)
        filled, clusters = np.nan_to_num(pair.candidate, nan=rest), pair.clusters(spec.cluster)
        look = look_of(
            paired_look(pair.baseline, filled, clusters=clusters, is_finite=is_finite), pair.n_baseline, boundaries
        )
        verdict, d = verdict_at(look, spec), look.difference
        if verdict != found.verdict or (verdict == "fail" and d * found.difference < 0.0):  # by a drop, and by a rise
            return False
    return True


def with_errors_of(bank: "Bank", spec: GateSpec) -> GateSpec:
    """Return the spec with lost answers counted as the bank's were, where it does not say."""
    return replace(spec, errors=spec.errors or HowRead(bank.responses.items).lost_as)


def _signs_of_choice(pair: "GatePair") -> tuple[list[str], list[str]]:
    """Say by which signs the items that the candidate ran are no random sample of the baseline's, and what it lacks."""
    seen = ~np.isnan(pair.candidate)
    signs: list[str] = []
    n, total = pair.n_answered, pair.n_baseline
    if n == total:
        return signs, []
    log_chance = math.log(1e-3)  # of a probability below which nobody takes items for a random draw
    places, drawn = np.flatnonzero(seen), _log_choices(n, total)
    span = int(places[-1] - places[0]) + 1
    if math.log(total) + _log_choices(n, span) - drawn < log_chance:
        signs.append(
            f"the {n} items are next to each other in the baseline's file, from {places[0] + 1} to {places[-1] + 1} of "
            f"{total}: no random draw. The verdict is of such items alone. Run those that itembank gate start draws"
        )
    here, everywhere = float(pair.baseline[seen].mean()), float(pair.baseline.mean())
    error = float(np.std(pair.baseline, ddof=1)) * math.sqrt(1.0 / n - 1.0 / total)
    if abs(here - everywhere) > 3.5 * error:  # as the score on a random sample hardly ever differs from that on all
        signs.append(
            f"the {n} items are hardly a random sample: the baseline scores {100 * here:.1f} on these and "
            f"{100 * everywhere:.1f} on all {total}. Run the items that itembank gate start draws"
        )
    scenarios = pair.matrix.items["scenario"]
    ran, left = (set(scenarios.filter(pl.Series(which))) for which in (seen, ~seen))
    absent = sorted(left - ran)
    if not absent:
        return signs, []
    no_item = f"no item of {plural(len(absent), 'scenario')}: {shown(absent)}"
    if not ran & left and len(ran | left) * math.log(2.0) - drawn < log_chance:
        return [*signs, f"the candidate ran whole scenarios, which is no random draw, and {no_item}"], []
    return signs, [f"the candidate ran {no_item}"]


def _log_choices(n: int, total: int) -> float:
    """Logarithm of the number of ways to choose so many."""
    return math.lgamma(total + 1) - math.lgamma(n + 1) - math.lgamma(total - n + 1)


def _by_comparison(
    pair: "GatePair", bank: "Bank", selection: "Selection | None", spec: GateSpec, progress: ProgressCallback
) -> Gate:
    """Take the difference and its bounds from `compare`, which knows how the items were drawn, or past pairs."""
    from itembank.comparison.compare import compare  # noqa: PLC0415 (as of `gate`)
    from itembank.comparison.comparison_spec import ComparisonSpec  # noqa: PLC0415

    bounds = []
    for error in spec.error_rates:
        choices = ComparisonSpec(level=1.0 - 2.0 * error, estimand=spec.estimand)
        found = compare(bank, pair.matrix, selection=selection, spec=choices, progress=progress)
        bounds.append((float(found.difference.low[0, -1]), float(found.difference.high[0, -1])))
    value, scores = float(found.difference.value[0, -1]), found.ranking.score[:, -1]
    by_miss, by_alarm, (low, high) = bounds
    n_items, n_total = int(found.pairs.n_shared_items[0, -1]), bank.n_total
    look = Look(n_items, value, low, high, by_miss, by_alarm, is_exact=low == high)
    none_left = 1.0 / n_total if found.estimand == RUN else 0.0

    def ahead(n: int) -> Look:
        """Bounds come nearer as standard errors do."""
        part = math.sqrt(max(1.0 / n - none_left, 0.0) / (1.0 / n_items - none_left))
        ends = [value + part * (end - value) for end in (low, high, *by_miss, *by_alarm)]
        return Look(n, value, ends[0], ends[1], (ends[2], ends[3]), (ends[4], ends[5]), is_exact=part == 0.0)

    return verdict_of(
        pair,
        [look],
        spec,
        method="compare",
        estimand=found.estimand,
        n_total=n_total,
        ahead=ahead,
        baseline_score=float(scores[0]),
        notes=found.notes,
        bank_id=bank.bank_id,
    )


def as_responses(given: "GivenResponses", errors: Errors | None = None) -> ResponseMatrix:
    """Return the responses themselves, or read those at a path or several; lost answers count as `errors`."""
    if isinstance(given, ResponseMatrix):
        return given.with_errors(errors)
    from itembank.bank import arguments  # noqa: PLC0415 (the command line reads its files itself)

    return arguments.as_responses(given, errors)


def option_probabilities(paths: Sequence[Path], read: ResponseMatrix) -> ResponseMatrix | None:
    """Read the right options' probabilities from the logs that these responses come from; None where they have none."""
    if "metric" not in read.items.columns:  # not from logs of a harness
        return None
    from itembank.readers.read import read_matrix  # noqa: PLC0415
    from itembank.readers.reading_specs import ReadingSpec  # noqa: PLC0415

    spec = ReadingSpec(response="probability", allow_mixed_prompts=True)
    try:
        with unsaid(DataWarning):  # of the logs, given before
            found = read_matrix(list(paths), spec)
    except DataError:
        return None
    is_certain = np.isin(found.responses, (0.0, 1.0)) | np.isnan(found.responses)
    return None if is_certain.all() else found  # of a harness whose logs hold scores alone


def probabilities_of_both(
    baseline: Sequence[Path], one: ResponseMatrix, candidate: Sequence[Path], other: ResponseMatrix
) -> tuple[ResponseMatrix, ResponseMatrix] | None:
    """Read the probabilities of both models, where the logs of both have them."""
    first = option_probabilities(baseline, one)
    second = None if first is None else option_probabilities(candidate, other)
    return None if first is None or second is None else (first, second)


@dataclass(frozen=True, slots=True)
class GatePair:
    """Baseline and candidate over the items of the baseline."""

    matrix: ResponseMatrix  # The two models, baseline first
    costs: dict[str, float]  # Of one item to the candidate, or else the baseline, by unit

    @classmethod
    def of(
        cls, baseline: ResponseMatrix, candidate: ResponseMatrix, *, allow_mixed_prompts: bool = False
    ) -> "GatePair":
        """Check that the two can be compared, and join them."""
        check_one_model("baseline", baseline)
        check_one_model("candidate", candidate)
        baseline = baseline.take(items=np.flatnonzero(~np.isnan(baseline.responses[0])))
        asked = baseline.items["item_id"]
        shared, others = only_items(candidate, asked)
        if not shared.n_items or np.isnan(shared.responses).all():
            raise DataError(
                f"baseline and candidate must have run the same items, and share none of {baseline.n_items} and "
                f"{candidate.n_items}: the baseline has {shown(baseline.item_ids[:3])}, the candidate "
                f"{shown(candidate.item_ids[:3])}. Run the baseline's items, or read both with the same names of tasks."
            )
        if others:
            raise DataError(
                f"the candidate must have run items of the baseline, got {len(others)} of {candidate.n_items} that the "
                f"baseline did not run: {shown(others)}. Leave these out, or run the baseline on them, too."
            )
        changed = other_in(in_both(shared.items, baseline.items, CONTENT), CONTENT)
        if changed:
            raise DataError(
                f"both must have run the same items, got {len(changed)} with another content: "
                f"{shown(changed)}. The benchmark changed between the runs: run the baseline anew."
            )
        ask = remedy("allow_mixed_prompts=True", "--allow-mixed-prompts")
        advice = f"To ask whether the candidate's prompt is as good as the baseline's: {ask}."
        tables = shared.items, baseline.items
        check_read_alike(*tables, whose="the baseline", advice=advice, is_ignored=allow_mixed_prompts)
        both = np.full((2, baseline.n_items), np.nan)
        both[0] = baseline.responses[0]
        places = baseline.item_indices(shared.item_ids)
        both[1, places] = shared.responses[0]
        trials = None
        if baseline.n_trials is not None or shared.n_trials is not None:
            trials = np.zeros(both.shape, dtype=np.int64)
            trials[0] = 1 if baseline.n_trials is None else baseline.n_trials[0]
            trials[1, places] = 1 if shared.n_trials is None else shared.n_trials[0]
            trials[np.isnan(both)] = 0
        costs = {
            unit: float(np.nanmean(values))
            for one in (baseline, shared)
            for unit, values in one.costs.items()
            if not np.isnan(values).all()
        }
        names = [baseline.model_ids[0], candidate.model_ids[0]]
        if names[0] == names[1]:
            names = [f"{names[0]} (baseline)", f"{names[1]} (candidate)"]
        matrix = ResponseMatrix.create(both, model_ids=names, items=baseline.items, n_trials=trials)
        return cls(matrix, costs)

    @property
    def baseline(self) -> FloatArray:
        """Responses of the baseline, (n_items,)."""
        responses: FloatArray = self.matrix.responses[0]
        return responses

    @property
    def candidate(self) -> FloatArray:
        """Responses of the candidate, NaN where there is none, (n_items,)."""
        responses: FloatArray = self.matrix.responses[1]
        return responses

    @property
    def n_answered(self) -> int:
        """Items that the candidate answered."""
        return int((~np.isnan(self.candidate)).sum())

    @property
    def n_baseline(self) -> int:
        """Items that the baseline answered."""
        return self.matrix.n_items

    @property
    def chance(self) -> float | None:
        """Variance of the difference at one item from run to run (`run_chance`); None where nobody repeated any."""
        trials = self.matrix.n_trials
        return None if trials is None else run_chance(self.matrix.responses, trials)

    def look(self, estimand: str, *, probabilities: FloatArray | None = None, cluster: str = "") -> PairedLook:
        """Take the difference that is meant from the answers of both."""
        chance = self.chance if estimand == REPEATED else None
        if estimand == REPEATED and chance is None:
            raise needs_repeats()
        return paired_look(
            self.baseline,
            self.candidate,
            probabilities=probabilities,
            clusters=self.clusters(cluster),
            is_finite=estimand != QUESTIONS,
            chance=chance,
        )

    def clusters(self, column: str) -> IntArray | None:
        """Return what items belong together, (n_items,); None without a column."""
        if not column:
            return None
        items = self.matrix.items
        if column not in items.columns:
            raise DataError(
                f"items are clustered by a column of the item table, {shown(items.columns, limit=99)}, got {column!r}. "
                "Give the baseline a table of items with that column: itembank import RESULTS --items FILE."
            )
        values = items[column].cast(pl.String).fill_null("").to_numpy()
        return np.unique(values, return_inverse=True)[1].astype(np.int64)

    def aligned(self, probabilities: Sequence[ResponseMatrix]) -> FloatArray:
        """Return what both models' probabilities are for the items, NaN where unknown, (2, n_items)."""
        result = np.full((2, self.matrix.n_items), np.nan)
        for row, one in enumerate(probabilities):
            if one.n_models != 1:
                raise DataError(f"probabilities must be of one model each, got {one.n_models}: {shown(one.model_ids)}.")
            known, _ = only_items(one, self.matrix.items["item_id"])
            if known.n_items:
                result[row, self.matrix.item_indices(known.item_ids)] = known.responses[0]
        return result

    def upto(self, answered: Sequence[str]) -> "GatePair":
        """Leave out what the candidate answered beyond these items."""
        responses = self.matrix.responses.copy()
        beyond = np.ones(responses.shape[1], dtype=bool)
        beyond[self.matrix.item_indices(list(answered))] = False
        responses[1, beyond] = np.nan
        trials = None if self.matrix.n_trials is None else np.where(np.isnan(responses), 0, self.matrix.n_trials)
        matrix = ResponseMatrix.create(responses, models=self.matrix.models, items=self.matrix.items, n_trials=trials)
        return GatePair(matrix, self.costs)


def look_of(found: PairedLook, n_items: int, boundaries: Sequence[float]) -> Look:
    """Turn an estimate into a look; `boundaries` are those of a miss, of a false alarm, and of the interval.

    Each is so many standard errors.
    """
    reach = np.array([student_boundary(one, found.degrees) for one in boundaries])
    known = found.difference, found.variance, found.unit, found.flips
    lower, upper = lower_bound(*known, reach).tolist(), upper_bound(*known, reach).tolist()
    by_miss, by_alarm, (low, high) = zip(lower, upper, strict=True)
    if found.is_exact:
        low = high = found.difference
        by_miss = by_alarm = (low, high)
    return Look(n_items, found.difference, low, high, by_miss, by_alarm, found.is_exact)


def verdict_at(look: Look, spec: GateSpec) -> Verdict:
    """Return what a look says."""
    d, margin, healthy = look.difference, spec.margin, spec.healthy
    if look.by_miss[0] > TIE - margin and (not spec.both_sides or look.by_miss[1] < margin - TIE):
        return "pass"
    fell = d <= TIE - margin and (look.by_alarm[1] < -healthy - TIE or look.is_exact)
    rose = spec.both_sides and d >= margin - TIE and (look.by_alarm[0] > healthy + TIE or look.is_exact)
    return "fail" if fell or rose else "undecided"


def verdict_of(
    pair: GatePair,
    looks: Sequence[Look],
    spec: GateSpec,
    *,
    method: str,
    estimand: str,
    n_total: int,
    ahead: Callable[[int], Look],  # What so many items would show, were the difference what it seems
    baseline_score: float = np.nan,  # By the bank's weights, where they are known; else the mean of its answers counts
    next_items: Sequence[str] = (),
    notes: Sequence[str] = (),
    bank_id: str = "",
) -> Gate:
    """Pack what was found; `pair` holds what was answered up to the last look."""
    verdict, last = verdict_at(looks[-1], spec), looks[-1]
    if verdict == "undecided" and spec.healthy + TIE < -last.difference < spec.margin - TIE and not next_items:
        said = "the drop seems to lie between the tolerance and the margin, where either verdict is right"
        notes = [*notes, Fact(said)]
    most = n_total if estimand == RUN else last.n_items + 1_000_000
    more = None if verdict != "undecided" else _items_to_decide(last, spec, ahead, most)
    both = pair.matrix
    shared = ~np.isnan(pair.candidate)
    ids, names = both.item_ids, both.items["scenario"].to_list()
    lost, won = flips(pair.baseline, pair.candidate)
    change = np.abs(np.nan_to_num(pair.candidate - pair.baseline))
    flipped = [place for place in np.argsort(-change, kind="stable").tolist() if change[place] > 0.0]
    scenarios = []
    for name in dict.fromkeys(name for name, is_there in zip(names, shared.tolist(), strict=True) if is_there):
        rows = np.array([one == name for one in names]) & shared
        before, after = pair.baseline[rows], pair.candidate[rows]
        means = float(before.mean()), float(after.mean())
        scenarios.append(ScenarioChange(name, int(rows.sum()), *means, *flips(before, after)))
    return Gate(
        verdict=verdict,
        looks=tuple(looks),
        baseline_id=both.model_ids[0],
        candidate_id=both.model_ids[1],
        baseline_score=float(pair.baseline.mean()) if math.isnan(baseline_score) else baseline_score,
        n_items=pair.n_answered,
        n_total=n_total,
        right_to_wrong=lost,
        wrong_to_right=won,
        method=method,
        estimand=estimand,
        items_to_decide=more,
        cost_to_decide={} if more is None else {unit: more * cost for unit, cost in pair.costs.items()},
        scenarios=tuple(scenarios),
        flipped=tuple(FlippedItem(ids[place], names[place], *both.responses[:, place].tolist()) for place in flipped),
        next_items=tuple(next_items) if verdict == "undecided" else (),
        spec=spec,
        notes=tuple(notes),
        bank_id=bank_id,
    )


def looks_ahead(found: PairedLook, boundaries: Sequence[float]) -> Callable[[int], Look]:
    """Return what gives the look at so many items, were the shares of answers that change what they seem."""
    return lambda n: look_of(found if found.ahead is None else found.ahead(n), n, boundaries)


def _items_to_decide(look: Look, spec: GateSpec, ahead: Callable[[int], Look], most: int) -> int | None:
    """Say how many more items decide, were the shares of answers that change what they seem; None if `most` do not."""
    sizes = range(look.n_items + 1, most + 1)
    place = bisect_left(sizes, True, key=lambda n: verdict_at(ahead(n), spec) != "undecided")
    return None if place == len(sizes) else place + 1  # beyond, the difference is too near to the margin
