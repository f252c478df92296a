"""Gates side by side, and how often they are wrong: ``python -m benchmarks.gates``.

1. The replay on GSM8K. Of the models that answered all 552 items, 400 make a bank and 600 others are pairs of baseline
   and candidate: healthy ones agree on 88 % of the items or more and differ by 2.35 points at most, bad ones drop by 5
   to 15 points. Every gate gets the same pairs and a margin of 5 points. Other models chose the methods.
2. Probabilities: neighbouring checkpoints of the built-in language models, items as a gate draws them, right and wrong
   alone and with the options' probabilities. Mixtures other than these chose the method.
3. Error rates over all looks, by simulation with known truth: copies with trial noise (A/A), candidates that are worse
   by just the margin or just the tolerance, and how often intervals hold at all looks.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from itembank.bank.banks import Bank
from itembank.calibration.build import calibrate
from itembank.comparison.difference_tests import mcnemar_exact, paired_t
from itembank.errors import ItembankWarning
from itembank.estimation.estimate import estimate
from itembank.gating.gate_spec import GateSpec
from itembank.gating.results import Gate
from itembank.gating.stages import start_gate
from itembank.gating.with_bank import drawn_order
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.intervals import t_reach
from itembank.numerics.paired import balanced_order, paired_look
from itembank.planning.select import select
from itembank.readers.builtin import load_builtin
from itembank.readers.read import read_responses
from itembank.responses.responses import ResponseMatrix

MARGIN = 0.05
N_PAST, N_NEW, N_HEALTHY, N_BAD = 400, 600, 800, 400
N_FIXED = 100
N_COPIES, N_WORSE = 1000, 500
TRIED_ON = ("arithmetic", "code", "english", "repeated")
"""Mixtures of language models on which the use of probabilities was tried."""
Verdicts = tuple[list[str], list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        tables = {
            "gates-simulated": list(_simulated()),
            "gates-probabilities": list(_probabilities()),
            "gates-replay": list(_replay()),
        }
    for name, lines in tables.items():
        print(f"\n{name}", *lines, sep="\n")
        if arguments.output:
            arguments.output.mkdir(parents=True, exist_ok=True)
            (arguments.output / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")


def _replay() -> Iterator[str]:
    """Yield a row for each gate."""
    folder = Path(os.environ.get("ITEMBANK_SHARED", "../shared")) / "data" / "openllm1_gsm8k"
    every = read_responses([folder / "responses.parquet"])
    complete = np.flatnonzero(~np.isnan(every.responses).any(axis=1))
    order = complete[np.random.default_rng(1).permutation(complete.size)]
    past, new = every.take(models=order[:N_PAST]), every.take(models=order[N_PAST : N_PAST + N_NEW])
    bank = calibrate(past)
    healthy, bad = _pairs(new.responses)
    gates = [
        ("threshold: drop of 100 random items", _fixed(new, "mean")),
        ("threshold: gp-IRT on 100 anchors", _gp_irt(bank, new)),
        ("McNemar's test, 100 random items", _fixed(new, "mcnemar")),
        ("paired t-test, 100 random items", _fixed(new, "t")),
        ("clustered interval, 100 random items", _fixed(new, "interval")),
        ("itembank gate, no bank, in stages", _staged(None, new)),
        ("itembank gate, bank, in stages", _staged(bank, new)),
    ]
    words = ["failed", "passed", "undecided", "items"], ["passed", "failed", "undecided", "items"]
    heads = [f"{kind}: {cell}" for kind, own in zip(("healthy", "bad"), words, strict=True) for cell in own]
    yield f"| gate | {' | '.join(heads)} | intervals held: healthy | bad |"
    yield "|---" * 11 + "|"
    for name, judge in gates:
        print(name, file=sys.stderr, flush=True)
        cells, held = [], []
        for pairs in (healthy, bad):
            verdicts, items, hits = judge(pairs)
            shares = {word: float(np.mean([one == word for one in verdicts])) for word in ("fail", "pass", "undecided")}
            wrong, right = ("fail", "pass") if pairs is healthy else ("pass", "fail")
            cells += [_percent(shares[wrong]), _percent(shares[right]), _percent(shares["undecided"])]
            cells.append(f"{np.mean(items):.0f}")
            held.append(f"{np.mean(hits):.3f}" if hits else "-")
        yield f"| {name} | {' | '.join([*cells, *held])} |"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _pairs(answers: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows of baseline and candidate of healthy and of bad pairs, each (n_pairs, 2)."""
    first, second = np.nonzero(~np.eye(answers.shape[0], dtype=bool))
    agreement = (answers @ answers.T + (1 - answers) @ (1 - answers).T)[first, second] / answers.shape[1]
    change = (answers.mean(axis=1)[None, :] - answers.mean(axis=1)[:, None])[first, second]
    rng = np.random.default_rng(2)

    def some(mask: np.ndarray, n: int) -> IntArray:
        rows = rng.choice(np.flatnonzero(mask), n, replace=False)
        return np.column_stack([first[rows], second[rows]])

    return some((agreement >= 0.88) & (np.abs(change) <= 0.0235), N_HEALTHY), some(
        (change <= -0.05) & (change >= -0.15), N_BAD
    )


def _fixed(new: ResponseMatrix, rule: str):
    """Judge by 100 random items, others for each pair."""
    total = new.n_items

    def judge(pairs: IntArray) -> tuple[list[str], list[int], list[bool]]:
        rng, verdicts, held = np.random.default_rng(3), [], []
        for one, other in pairs.tolist():
            items = rng.choice(total, N_FIXED, replace=False)
            a, b = new.responses[one, items], new.responses[other, items]
            d = b - a
            variance = np.array([d.var(ddof=1) / d.size])
            p = mcnemar_exact(np.array([(d < 0).sum()]), np.array([(d > 0).sum()]))[0]
            if rule == "mean":
                verdicts.append("fail" if d.mean() <= -MARGIN else "pass")
            elif rule in {"mcnemar", "t"}:
                p = p if rule == "mcnemar" else paired_t(np.array([d.mean()]), variance, np.array([d.size - 1]))[0]
                verdicts.append("fail" if p < 0.05 and d.mean() < 0 else "pass")
            else:
                reach = float(t_reach(0.95, d.size - 1.0) * np.sqrt(variance[0]))
                low, high = d.mean() - reach, d.mean() + reach
                verdicts.append("pass" if low > -MARGIN else "fail" if high < 0 else "undecided")
                truth = float(new.responses[other].mean() - new.responses[one].mean())
                held.append(bool(low <= truth <= high))
        return verdicts, [N_FIXED] * len(verdicts), held

    return judge


def _gp_irt(bank: Bank, new: ResponseMatrix):
    """Judge by scores of gp-IRT from 100 anchors, the same for all."""
    chosen = select(bank, N_FIXED, method="anchor-irt", rng=0)
    answers = new.take(items=new.item_indices(chosen.item_ids))
    scores = estimate(bank, answers, selection=chosen, method="gp-irt", interval="model-based").value[:, -1]

    def judge(pairs: IntArray) -> tuple[list[str], list[int], list[bool]]:
        verdicts = ["fail" if scores[b] - scores[a] <= -MARGIN else "pass" for a, b in pairs.tolist()]
        return verdicts, [N_FIXED] * len(verdicts), []

    return judge


def _staged(bank: Bank | None, new: ResponseMatrix):
    """Judge by a gate in stages, with the baseline's full run; items are those of the candidate."""
    plan = start_gate(new.take(models=np.array([0])), bank=bank, spec=GateSpec(margin=MARGIN))

    def judge(pairs: IntArray) -> tuple[list[str], list[int], list[bool]]:
        verdicts, items, held = [], [], []
        rng = np.random.default_rng(4)
        for one, other in pairs.tolist():
            mine = replace(plan, baseline=new.take(models=np.array([one])))
            # another order for each pair
            together, known = np.zeros(new.n_items, dtype=np.int64), new.responses[one]
            order = balanced_order(together, known, rng) if bank is None else drawn_order(bank, rng)
            mine = replace(mine, order=tuple((new if bank is None else bank).item_ids[k] for k in order))
            found = mine.look(new.take(models=np.array([other])), bank=bank, in_stages=True)
            truth = float(new.responses[other].mean() - new.responses[one].mean())
            verdicts.append(found.verdict)
            items.append(found.last.n_items)
            held.append(_holds(found, truth))
        return verdicts, items, held

    return judge


def _holds(found: Gate, truth: float) -> bool:
    return all(look.low - 1e-9 <= truth <= look.high + 1e-9 for look in found.looks)


def _probabilities() -> Iterator[str]:
    """Yield rows for neighbouring checkpoints of mixtures that chose nothing."""
    answers, probabilities = (load_builtin("bytelms", response=kind) for kind in ("correct", "probability"))
    models = answers.models
    runs: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for row, (mixture, size, share) in enumerate(models.select("mixture", "size", "share_of_run").iter_rows()):
        runs.setdefault((mixture, size), []).append((share, row))
    pairs = [
        (early, late)
        for (mixture, _), steps in runs.items()
        if mixture not in TRIED_ON
        for (_, early), (_, late) in zip(sorted(steps)[2:], sorted(steps)[3:], strict=False)
    ]
    yield "| items | answers alone: error | held | half-width | with probabilities: error | held | half-width |"
    yield "|---" * 7 + "|"
    scenarios = np.unique(answers.items["scenario"].to_numpy(), return_inverse=True)[1]
    y, p, rng = answers.responses, probabilities.responses, np.random.default_rng(5)
    for n_items in (50, 100, 200, 400):
        found: dict[bool, list[tuple[float, bool, float]]] = {False: [], True: []}
        for early, late in pairs:
            truth = float(y[late].mean() - y[early].mean())
            for _ in range(20):
                asked = balanced_order(scenarios, p[early], rng)[:n_items]
                candidate = np.full(answers.n_items, np.nan)
                candidate[asked] = y[late, asked]
                for has_probabilities, results in found.items():
                    known = p[[early, late]] if has_probabilities else None
                    look = paired_look(y[early], candidate, probabilities=known)
                    reach = t_reach(0.95, look.degrees) * np.sqrt(look.variance)
                    results.append((look.difference - truth, abs(look.difference - truth) <= reach, reach))
        cells = []
        for results in found.values():
            errors, holds, reaches = map(np.array, zip(*results, strict=True))
            cells += [f"{100 * np.sqrt((errors**2).mean()):.2f}", f"{holds.mean():.3f}", f"{100 * reaches.mean():.1f}"]
        yield f"| {n_items} | {' | '.join(cells)} |"


def _simulated(n_items: int = 1000) -> Iterator[str]:
    """Yield error rates of gates in stages without a bank, over all looks, by simulated answers of known truth."""
    spec = GateSpec(margin=0.03)
    yield "| truth | answers that change | asked of | failed | passed | undecided | items | held at all looks |"
    yield "|---" * 8 + "|"
    cases = [
        ("no change: copies with trial noise", 0.0, 0.02),
        ("no change: copies with trial noise", 0.0, 0.10),
        ("worse by the tolerance", -0.015, 0.05),
        ("worse by the margin", -0.03, 0.03),
        ("worse by the margin", -0.03, 0.10),
        ("worse by twice the margin", -0.06, 0.12),
    ]
    for estimand in ("run", "questions"):
        for truth, change, churn in cases:
            verdicts, items, held = [], [], []
            rng = np.random.default_rng(6)
            for _ in range(N_COPIES if change == 0.0 else N_WORSE):
                one, other = _simulated_pair(rng, n_items, change, churn, is_exact=estimand == "run")
                plan = start_gate(_matrix(one), spec=replace(spec, estimand=estimand, seed=int(rng.integers(2**31))))
                found = plan.look(_matrix(other), in_stages=True)
                verdicts.append(found.verdict)
                items.append(found.last.n_items)
                held.append(_holds(found, change))
            shares = [_percent(float(np.mean([v == w for v in verdicts]))) for w in ("fail", "pass", "undecided")]
            name = "these items" if estimand == "run" else "questions like these"
            cells = [truth, _percent(churn), name, *shares, f"{np.mean(items):.0f}", f"{np.mean(held):.3f}"]
            print(*cells, file=sys.stderr, flush=True)
            yield f"| {' | '.join(cells)} |"


def _simulated_pair(
    rng: np.random.Generator, n_items: int, change: float, churn: float, *, is_exact: bool
) -> tuple[FloatArray, FloatArray]:
    """Answers of a baseline and a candidate; with `is_exact` their difference over these items is just `change`."""
    one = (rng.random(n_items) < 0.6).astype(float)
    other = one.copy()
    right, wrong = rng.permutation(np.flatnonzero(one == 1.0)), rng.permutation(np.flatnonzero(one == 0.0))
    fall, rise = (churn - change) / 2.0, (churn + change) / 2.0
    if is_exact:
        n_falls, n_rises = round(fall * n_items), round(rise * n_items)
    else:
        n_falls, n_rises, _ = rng.multinomial(n_items, [fall, rise, 1.0 - churn]).tolist()
    other[right[:n_falls]] = 0.0
    other[wrong[:n_rises]] = 1.0
    return one, other


def _matrix(answers: FloatArray) -> ResponseMatrix:
    return ResponseMatrix.create(answers[None, :], model_ids=["model"])


if __name__ == "__main__":
    main()
