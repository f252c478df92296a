"""A gate in stages: which items a candidate runs next, and what is known so far."""

import json
import math
import os
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from itembank.bank.arguments import GivenBank, GivenResponses, as_bank, as_responses
from itembank.checks import with_choices
from itembank.errors import (
    OF_LEVEL,
    DataError,
    DataWarning,
    IntegrityError,
    ParameterError,
    says_instead,
    shown,
    unsaid,
    warn,
)
from itembank.estimation.estimator_specs import RUN
from itembank.files.atomic import adding_to_folder, check_destination, write_text
from itembank.files.documents import RECORD_KEY, digest_fits, read_json, with_digest
from itembank.gating.gate import USUAL, GatePair, look_of, looks_ahead, verdict_at, verdict_of, with_errors_of
from itembank.gating.gate_spec import GateSpec
from itembank.gating.lost import asked_items, check_one_model, how_to_count, with_lost
from itembank.gating.results import Gate, Look, points, signed
from itembank.numerics.arrays import FloatArray
from itembank.numerics.looks import constant_boundary, lower_bound
from itembank.numerics.paired import PairedLook, balanced_order
from itembank.numerics.parallel import one_blas_thread
from itembank.readers.agreement import only_items
from itembank.readers.read import read_responses
from itembank.responses.content_order import content_order
from itembank.responses.error_kinds import Errors
from itembank.responses.how_read import check_one_answer_each
from itembank.responses.lost_answers import one_policy
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from itembank.tables import all_of, plural
from itembank.tabular import Compact, Fact, picked

if TYPE_CHECKING:
    from itembank.bank.banks import Bank

PLAN, BASELINE, PROBABILITIES = "gate.json", "baseline.parquet", "baseline-probabilities.parquet"


@dataclass(frozen=True, slots=True, repr=False)
class GatePlan(Compact):
    """Everything that is fixed before a candidate answers: order of items, looks and boundaries.

    Attributes
    ----------
    baseline : ResponseMatrix
        Of one model, to all items that the difference is about, with those whose answers it lost.
    spec : GateSpec
    order : tuple of item ids
        In which they are run.
    sizes : tuple of n_looks int
        How many of them are answered at each look.
    boundaries : tuple of 3 float
        For the spec's error rates: standard errors.
    probabilities : ResponseMatrix, optional
        The baseline's, of the right options.
    bank_id, bank_place : str
        The bank, and where it lay.
    """

    baseline: ResponseMatrix
    spec: GateSpec
    order: tuple[str, ...]
    sizes: tuple[int, ...]
    boundaries: tuple[float, ...]
    probabilities: ResponseMatrix | None = None
    bank_id: str = ""
    bank_place: str = ""

    @property
    def estimand(self) -> str:
        """What the difference is of: this run, unless something else was asked for."""
        return self.spec.estimand or RUN

    @property
    def none_left(self) -> float:
        """What ``1/n`` is at the number of items that leaves nothing to chance: 0 if no number does."""
        return 1.0 / len(self.order) if self.estimand == RUN else 0.0

    def next_items(self, answered: Collection[str] = ()) -> tuple[str, ...]:
        """Items of the first stage that is not yet answered in full, without those that are; none after the last."""
        known = set(answered)
        for size in self.sizes:
            left = tuple(item for item in self.order[:size] if item not in known)
            if left:
                return left
        return ()

    def with_errors(self, errors: Errors | None) -> Self:
        """Return the plan with lost answers of candidates counted by another policy; None leaves it as it is."""
        return self if errors is None else replace(self, spec=replace(self.spec, errors=errors))

    def look(
        self,
        candidate: GivenResponses,
        *,
        bank: GivenBank | None = None,
        probabilities: GivenResponses | None = None,
        allow_mixed_prompts: bool = False,
        in_stages: bool = False,
    ) -> Gate:
        """Say what is known of a candidate: at the last of the looks that its answers allow which decides, if any does.

        The bounds hold over all looks, so that the verdict of any may be taken. A candidate that ran stage after stage
        has no answers beyond the first one that decides.

        Parameters
        ----------
        candidate : ResponseMatrix, path or paths
            All answers so far. Those beyond the last complete stage are not looked at.
        bank : Bank or path, optional
            Of a gate with a bank: by default from where it lay.
        probabilities : responses, optional
            The candidate's, where the baseline's are known.
        in_stages : bool
            Stop at the first look that decides, as a candidate that runs stage after stage does: to simulate gates.

        Raises
        ------
        DataError
            If the first stage is not answered yet; and as `gate`.
        """
        given = as_responses(candidate, self.spec.errors)
        known = None if probabilities is None else as_responses(probabilities)
        lost = "" if given.lost is None else f" Answers were lost: {given.lost.in_words}. {how_to_count()}."

        def judge(one: ResponseMatrix, other: ResponseMatrix) -> Gate:
            pair = GatePair.of(one, other, allow_mixed_prompts=allow_mixed_prompts)
            return self._judged(pair, bank, known, to_first=in_stages, lost=lost)

        def judge_upto(one: ResponseMatrix, other: ResponseMatrix, most: float) -> Gate:
            pair = GatePair.of(one, other, allow_mixed_prompts=allow_mixed_prompts)
            return self._judged(pair, bank, known, to_first=False, lost=lost, upto=(most, asked_items(given)))

        return with_lost(self.baseline, given, self.spec, judge, judge_upto)

    def _judged(
        self,
        pair: GatePair,
        bank: GivenBank | None,
        probabilities: ResponseMatrix | None,
        *,
        to_first: bool,  # That decides
        lost: str,  # What to say of answers that the candidate lost where too few are left
        upto: tuple[float, Sequence[str]] | None = None,  # Take looks at no more items than that, of these that ran
    ) -> Gate:
        """Take the looks that the answers of a pair allow."""
        answered = {
            item for item, is_known in zip(pair.matrix.item_ids, ~np.isnan(pair.candidate), strict=True) if is_known
        }
        most = math.inf
        if upto is not None:
            most, answered = upto[0], set(upto[1])
        sizes = [size for size in self.sizes if size <= most]
        reached = [number for number, size in enumerate(sizes) if answered.issuperset(self.order[:size])]
        if not reached:
            left = self.next_items(answered)
            raise DataError(
                f"the first look needs answers to {self.sizes[0]} items, and {len(left)} are missing: {shown(left)}. "
                f"Run them, and give all answers so far.{lost}"
            )
        known = None
        if self.probabilities is not None and probabilities is not None:
            known = pair.aligned([self.probabilities, probabilities])
        of_bank = self.bank(bank)
        taken: list[Look] = []
        for number in reached:
            items = self.order[: self.sizes[number]]
            known_here = pair.upto(items)
            if not known_here.n_answered:
                raise DataError(f"the candidate lost the answers to all {len(items)} items of a stage.{lost}")
            estimate = self._estimate(known_here, known, of_bank)
            taken.append(look_of(estimate, len(items), self.boundaries))
            if to_first and verdict_at(taken[-1], self.spec) != "undecided":
                break
        decided = [k for k, look in enumerate(taken) if verdict_at(look, self.spec) != "undecided"]
        taken = taken[: decided[-1] + 1] if decided and upto is None else taken
        n_items, score = taken[-1].n_items, np.nan
        if of_bank is not None:
            from itembank.gating.with_bank import full_score  # noqa: PLC0415

            score = full_score(of_bank, pair.matrix.take(models=np.array([0])))
        return verdict_of(
            pair.upto(self.order[:n_items]),
            taken,
            self.spec,
            method="bank" if self.bank_id else "paired" if known is None else "probabilities",
            estimand=self.estimand,
            n_total=len(self.order),
            ahead=looks_ahead(estimate, self.boundaries),  # of the last look: an undecided verdict rests on it
            baseline_score=score,
            next_items=self.next_items(answered),
            notes=[] if to_first else self._on_more_answers(pair, taken, of_bank),
            bank_id=self.bank_id,
        )

    def _on_more_answers(self, pair: GatePair, taken: Sequence[Look], bank: "Bank | None") -> list[str]:
        """Say which answers are there beyond the first look that decides and beyond the last, and what all give."""
        notes, last, total = [], taken[-1].n_items, len(self.order)
        is_decided = verdict_at(taken[-1], self.spec) != "undecided"
        early = next((one for one in taken[:-1] if verdict_at(one, self.spec) != "undecided"), None)
        if early is not None:
            verdict = verdict_at(early, self.spec).upper()
            notes.append(
                f"a candidate that runs stage after stage would have stopped at {plural(early.n_items, 'item')} with "
                f"{verdict}; this verdict rests on {plural(last, 'answer')}"
            )
        if last < pair.n_answered < total:
            why = "they decide nothing" if is_decided else "their stage is not complete"
            notes.append(f"{plural(pair.n_answered - last, 'more answer', 'do')} not count: {why}")
        elif last < pair.n_answered:
            exact = float((pair.candidate - pair.baseline).mean())
            if bank is not None:
                from itembank.gating.with_bank import full_score  # noqa: PLC0415

                one, other = (full_score(bank, pair.matrix.take(models=np.array([row]))) for row in (0, 1))
                exact = other - one
            said = f"{all_of(total, 'item', 'are')} answered, and their difference is {signed(exact)} points exactly"
            notes.append(Fact(said))
        return notes

    def _estimate(self, pair: GatePair, known: FloatArray | None, bank: "Bank | None") -> PairedLook:
        if bank is not None:
            from itembank.gating.with_bank import bank_look  # noqa: PLC0415

            return bank_look(bank, pair.matrix)
        return pair.look(self.estimand, probabilities=known, cluster=self.spec.cluster)

    def bank(self, given: GivenBank | None = None) -> "Bank | None":
        """Return the bank of the gate, by default loaded from where it lay; None of a gate without one."""
        if not self.bank_id:
            return None
        bank = as_bank(self.bank_place if given is None else given)
        if bank.bank_id != self.bank_id:
            raise IntegrityError(
                f"the gate was started with bank {self.bank_id}, got {bank.bank_id}. Give that bank, or start anew."
            )
        return bank

    def save(self, folder: str | Path) -> None:
        """Write the plan and the baseline's answers into a folder, whole or not at all.

        Raises `ParameterError` where something else is there (`check_gate_destination`).
        """
        check_gate_destination(Path(folder))
        place = self.bank_place
        if Path(place).is_absolute():  # seen from the gate, so that both can be moved, or kept in a repository
            place = os.path.relpath(place, Path(folder).resolve())
        record = {
            "schema_version": 1,
            "spec": asdict(self.spec),
            **picked(self, "order", "sizes", "boundaries"),
            "bank": self.bank_id,
            "bank_place": place,
        }
        with adding_to_folder(Path(folder)) as new:
            write_responses(self.baseline, new / BASELINE)
            if self.probabilities is not None:
                write_responses(self.probabilities, new / PROBABILITIES)
            write_text(new / PLAN, json.dumps(with_digest(record), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> "GatePlan":
        """Read a plan; `DataError` if there is none, `IntegrityError` if it was changed."""
        path = Path(folder) / PLAN
        if not path.is_file():
            raise DataError(
                f"{folder} must be the folder of a gate. Begin one: itembank gate start BASELINE -o FOLDER."
            )
        try:
            record = read_json(path)
        except DataError as error:
            raise IntegrityError(f"{error} The gate is damaged: start anew.") from error
        is_signed = isinstance(record, dict) and RECORD_KEY in record and digest_fits(record)
        if not is_signed or record.get("schema_version") != 1:
            raise IntegrityError(f"{path} is not the gate that was written: it is damaged, or was changed. Start anew.")
        try:
            with unsaid(DataWarning):  # of lost answers, given at the start
                baseline = read_responses(Path(folder) / BASELINE)
            probabilities = Path(folder) / PROBABILITIES
            plan = cls(
                baseline=baseline,
                spec=GateSpec(**record["spec"]),
                order=tuple(map(str, record["order"])),
                sizes=tuple(map(int, record["sizes"])),
                boundaries=tuple(map(float, record["boundaries"])),
                probabilities=read_responses(probabilities) if probabilities.is_file() else None,
                bank_id=str(record["bank"]),
                bank_place=place_of(str(record["bank_place"]), Path(folder)),
            )
            plan._check()
        except (KeyError, TypeError, ValueError) as error:
            raise IntegrityError(f"{path} does not hold a gate: {error}. Start anew.") from error
        return plan

    def _check(self) -> None:
        """Raise `ValueError` where a file says what no gate can be."""
        if len(self.boundaries) != 3 or not all(one >= 0.0 for one in self.boundaries):
            raise ValueError(f"boundaries must be three numbers of standard errors, got {self.boundaries}")
        if not self.sizes or self.sizes[0] < 1 or any(a >= b for a, b in pairwise((*self.sizes, len(self.order) + 1))):
            raise ValueError(f"sizes must rise from 1 or more to at most {len(self.order)} items, got {self.sizes}")
        if len(set(self.order)) < len(self.order) or not set(self.order) <= set(self.baseline.item_ids):
            raise ValueError("order must have items of the baseline, each once")


def check_gate_destination(folder: Path) -> None:
    """Raise `ParameterError` when a gate cannot be written at `folder`, or something else is there."""
    check_destination(folder, is_folder=True)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / PLAN).is_file():
        raise ParameterError(f"{folder} exists and is not a gate; choose another place or move it away.")


@says_instead(**OF_LEVEL | {"alpha": "false_alarm"}, beta="miss")
@one_blas_thread()
def start_gate(
    baseline: GivenResponses,
    *,
    bank: GivenBank | None = None,
    probabilities: GivenResponses | None = None,
    spec: GateSpec = USUAL,
    **choices: Any,
) -> GatePlan:
    """Plan a gate in stages: a candidate runs the items of a stage, and stops as soon as there is a verdict.

    Without a bank items are run in random order, each scenario in proportion. With a bank they are drawn with known
    probabilities, high where it is unsure (`drawn_order`), and its predictions and the baseline's answers make the
    difference more precise. The boundary is the same number of standard errors at all looks, so that the error rates
    hold over all of them (Pocock 1977).

    Parameters
    ----------
    baseline : ResponseMatrix, path or paths
        Of one model, to all items. With a bank to all of its items.
    bank : Bank or path, optional
    probabilities : responses, optional
        Of the baseline, of the right options; then the candidate's tell more than right and wrong do.
    spec : GateSpec
    **choices
        Fields of the spec by name: ``margin=0.02``.

    Raises
    ------
    DataError
        When the baseline is not one model, or has not answered all items of the bank.
    ParameterError
        When no number of these items can decide within the margin.

    Examples
    --------
    >>> plan = start_gate("runs/bf16", margin=0.02)  # doctest: +SKIP
    >>> plan.next_items()  # doctest: +SKIP
    >>> plan.look("runs/int8").verdict  # doctest: +SKIP
    """
    spec = with_choices(spec, choices)
    loaded = None if bank is None else as_bank(bank)
    spec = spec if loaded is None else with_errors_of(loaded, spec)
    given = as_responses(baseline, spec.errors)
    check_one_answer_each(given.items, "a gate in stages")
    if loaded is not None and given.n_items:
        given, _ = only_items(given, loaded.responses.items["item_id"])
    given = given.take(items=content_order(given).items)  # the order of a file must not draw other items
    check_one_model("baseline", given)
    policy = one_policy([given.lost], spec.errors)
    given = given.with_errors(policy)
    if policy == "bounds" and given.lost is not None and given.lost.n.any():
        raise DataError(
            f"a gate in stages by bounds needs all answers of the baseline, and {given.lost.n.sum()} were lost "
            f"({given.lost.in_words}). Run these items again, or count lost answers as missing or wrong."
        )
    complete = given.take(items=np.flatnonzero(given.observed[0]))
    if policy == "missing" and given.lost is not None and given.lost.n.any():
        warn(
            f"the baseline lost answers ({given.lost.in_words}): the gate is about the {complete.n_items} items that "
            f"it answered. {how_to_count()}, or run these again first.",
            DataWarning,
        )
    pair = GatePair.of(complete, complete)  # the same checks
    total = complete.n_items
    if loaded is not None:
        from itembank.gating.with_bank import drawn_order, full_score  # noqa: PLC0415

        if spec.estimand not in {None, RUN}:
            raise ParameterError(
                f"a gate in stages with a bank is of this run, got estimand {spec.estimand!r}. Leave it out."
            )
        if np.isnan(full_score(loaded, complete)):
            raise DataError(
                f"the baseline of a gate in stages must have answered all {loaded.n_total} items of bank "
                f"{loaded.bank_id}, got {complete.n_items}. Run the others once, or leave the bank out."
            )
        total = loaded.n_items
        ids, places = loaded.item_ids, drawn_order(loaded, np.random.default_rng(spec.seed))
    else:
        scenarios = np.unique(complete.items["scenario"].to_numpy(), return_inverse=True)[1]
        known = complete.responses[0]
        if probabilities is not None:
            known = pair.aligned([as_responses(probabilities)] * 2)[0]
            known = np.where(np.isnan(known), complete.responses[0], known)
        places = balanced_order(scenarios, known, np.random.default_rng(spec.seed), pair.clusters(spec.cluster))
        ids = complete.item_ids
    sizes = _sizes(spec, total, first=50 if loaded is None else 25)
    plan = GatePlan(
        given.take(items=np.flatnonzero(given.asked[0])),
        spec,
        tuple(ids[place] for place in places.tolist()),
        sizes,
        _boundaries(sizes, 1.0 / total if spec.estimand in {None, RUN} else 0.0, spec),
        probabilities=None if probabilities is None else as_responses(probabilities),
        bank_id="" if loaded is None else loaded.bank_id,
        bank_place="" if loaded is None else place_of(bank),
    )
    check_can_decide(plan)
    return plan


def _boundaries(sizes: Sequence[int], none_left: float, spec: GateSpec) -> tuple[float, ...]:
    """Return the standard errors that chance crosses at any look as rarely as asked, for each error rate."""
    information = tuple(1.0 / (1.0 / size - none_left) for size in sizes if 1.0 / size > none_left)
    return tuple(constant_boundary(information, error) if information else 0.0 for error in spec.error_rates)


def _sizes(spec: GateSpec, total: int, *, first: int) -> tuple[int, ...]:
    """Numbers of items at each look, the last that of all items unless there are limits."""
    most = min(total, spec.max_items or total)
    size, sizes = min(spec.first_look or first, most), []
    while size < most / math.sqrt(spec.growth):
        sizes.append(size)
        size = max(size + 1, round(size * spec.growth))
    return (*sizes, most)


def place_of(bank: GivenBank | None, folder: Path = Path()) -> str:
    """Return where a bank lies, so that it is found from anywhere; `folder` is where its path begins."""
    from itembank.bank.bank_places import is_bank_name  # noqa: PLC0415

    if not isinstance(bank, str | Path) or not str(bank):
        return ""
    return str(bank) if is_bank_name(Path(bank)) else str((folder / bank).resolve())


def check_can_decide(plan: GatePlan) -> None:
    """Refuse a margin that even a candidate with the very answers of the baseline could not be shown to hold."""
    spec, total = plan.spec, len(plan.order)
    most = plan.sizes[-1]
    per_item = 1.0 / most - plan.none_left
    if per_item <= 0.0:
        return
    boundary = plan.boundaries[0]
    least = -float(lower_bound(0.0, 0.0, per_item, (0.0, 0.0), boundary))
    if least >= spec.margin:
        needed = math.ceil(1.0 / (spec.margin / (1.0 - spec.margin) / boundary**2 + plan.none_left))
        raise ParameterError(
            f"{plural(most, 'item')} cannot decide within {points(spec.margin)}: a candidate that gives the very "
            f"answers of the baseline could still be worse by {points(least)}. Run {needed} items or more"
            f"{'' if needed <= total else f', of which the benchmark has only {total}'}, or take a margin above "
            f"{points(least)}. No item was run."
        )
