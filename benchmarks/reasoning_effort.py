"""Reasoning budgets as conditions of one model: ``ITEMBANK_SHARED=... python -m benchmarks.reasoning_effort``.

WILD's appendix D asks whether items calibrated on other models serve a model that reasons, at any budget. LiveCodeBench
has o1, o3-mini and o4-mini at low, medium and high effort in code generation; each condition counts as a model. Items
are calibrated (one ability, counts of attempts) on models that do not reason, but for ten of them in each of four
splits; and once more on these and the reasoning models of other families. The conditions and the ten are asked 16
problems each by Fisher information, and their scores on easy, medium and hard problems are predicted. Shown are the
score, and for both banks the ability by these 16 (mean 0 and standard deviation 1 among the bank's models) and the
error of the predicted scores in points, means over splits. LiveCodeBench records no tokens.
"""

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.bank.banks import Bank
from itembank.errors import ItembankWarning
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.sessions.limits import Budget
from itembank.sessions.pool import SessionPool
from itembank.sessions.recorded import Recorded, answer_from_record
from itembank.sessions.session_spec import SessionSpec

EFFORT = re.compile(r"^(O1|O3-Mini|O4-Mini).*\((Low|Med|Medium|High)\)$")
REASONS = re.compile(r"^O[134]-|Thinking|QwQ|Gemini-2\.5|\(High\)")
N_ASKED, N_LEFT_OUT, N_SPLITS, LEAST_MODELS = 16, 10, 4, 5
BANKS = ("plain", "reasoning")
ORDER = {"Low": 0, "Med": 1, "Medium": 1, "High": 2}


def main() -> None:
    warnings.simplefilter("ignore", ItembankWarning)
    responses = loaded()
    rows = [row for split in range(N_SPLITS) for row in tried(responses, split)]
    table = pl.DataFrame(rows, schema=["model", "effort", "bank", "score", "ability", "error"], orient="row")
    means = table.group_by("model", "effort", "bank").agg(pl.col("score", "ability", "error").mean())
    wide = means.pivot("bank", index=["model", "effort", "score"], values=["ability", "error"]).sort("model", "effort")
    print("| model | effort | score (%) | ability, error: no reasoning models in the bank | with them |")
    print("|---|---|---|---|---|")
    for row in wide.iter_rows(named=True):
        name = ("low", "medium", "high")[row["effort"]] if row["effort"] >= 0 else "-"
        cells = [f"{row[f'ability_{bank}']:+.2f}, {100.0 * row[f'error_{bank}']:.1f}" for bank in BANKS]
        print(f"| {row['model']} | {name} | {100.0 * row['score']:.1f} | {' | '.join(cells)} |")


def loaded() -> ib.ResponseMatrix:
    """Code generation: problems that models which do not reason have tried; the scenario is the difficulty."""
    path = Path(os.environ["ITEMBANK_SHARED"]) / "data" / "livecodebench" / "responses.parquet"
    whole = ib.read_responses(path, spec=ib.ReadingSpec(prefix_scenario=True))
    items = whole.items.select("item_id", "scenario", "subscenario")
    whole = whole.take(items=np.flatnonzero((items["scenario"] == "codegeneration").to_numpy()))
    whole = whole.take(models=np.flatnonzero(whole.observed.any(axis=1)))
    table = whole.items.select("item_id", scenario="subscenario")
    return ib.ResponseMatrix.create(
        whole.responses, models=whole.models.select("model_id"), items=table, n_trials=whole.n_trials
    )


def tried(responses: ib.ResponseMatrix, split: int) -> Iterator[tuple[str, int, str, float, float, float]]:
    """Ask ten models that do not reason, and all conditions of each family, from banks that have not seen them."""
    names = responses.model_ids
    found = [EFFORT.match(name) for name in names]
    reasons = [row for row, name in enumerate(names) if REASONS.search(name)]
    plain = np.random.default_rng(split).permutation(np.setdiff1d(np.arange(len(names)), reasons))
    tested = {f"{N_LEFT_OUT} that do not reason": plain[:N_LEFT_OUT].tolist()}
    for family in ("O1", "O3-Mini", "O4-Mini"):
        tested[family] = [row for row, match in enumerate(found) if match and match[1] == family]
    for family, rows in tested.items():
        others = [row for row in reasons if not names[row].startswith(f"{family}-")]
        for bank, past in zip(BANKS, (plain[N_LEFT_OUT:], np.append(plain[N_LEFT_OUT:], others)), strict=True):
            for row, score, ability, error in asked(responses, np.sort(past.astype(int)), rows):
                match = found[row] if family.startswith("O") else None
                yield family, ORDER[match[2]] if match else -1, bank, score, ability, error


def asked(
    responses: ib.ResponseMatrix, past: IntArray, rows: Sequence[int]
) -> Iterator[tuple[int, float, float, float]]:
    """Calibrate on past models and ask others: row, score, ability by the problems asked, error of the prediction."""
    known = responses.take(models=past)
    known = known.take(items=np.flatnonzero(known.observed.sum(axis=0) >= LEAST_MODELS))
    bank = ib.build_bank(known, ib.calibrations.Variational(family="binomial", positive_discrimination=True))
    new = responses.take(models=np.array(rows), items=responses.item_indices(known.item_ids))
    spec = SessionSpec("fisher", budget=Budget(n_items=N_ASKED), interval="model-based")
    pool, recorded = SessionPool.create(bank, spec), Recorded.of_responses(bank, new)
    for place, row in enumerate(rows):
        session = ib.AdaptiveSession(pool)
        answer_from_record(session, recorded, place, n_answers=N_ASKED)
        theta, scores = session.estimate().theta, new.responses[place]
        whole = responses.responses[row]
        yield row, float(np.nanmean(whole)), float(theta[0]), error_of(bank, theta, scores)


def error_of(bank: Bank, theta: FloatArray, scores: FloatArray) -> float:
    """Mean absolute error of the predicted score on easy, medium and hard problems."""
    predicted, part = probability(bank.parameters, theta.reshape(1, -1))[0], bank.targets.scenario_index
    known = ~np.isnan(scores)
    gaps = [(predicted - scores)[known & (part == one)].mean() for one in np.unique(part[known])]
    return float(np.abs(gaps).mean())


if __name__ == "__main__":
    main()
