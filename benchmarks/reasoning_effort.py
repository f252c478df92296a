"""Reasoning budgets as conditions of one model: ``ITEMBANK_SHARED=... python -m benchmarks.reasoning_effort``.

WILD's appendix D asks whether items calibrated on other models serve a model that reasons, at any budget. LiveCodeBench
has o1, o3-mini and o4-mini at low, medium and high effort in code generation; each condition counts as a model. Items
are calibrated on models that do not reason (one ability, counts of attempts), but for ten of them in each of four
splits. The conditions and these ten are asked 16 problems each by Fisher information, and their scores on easy, medium
and hard problems are predicted. Shown are the score, the ability by these 16 (mean 0 and standard deviation 1 among
models that do not reason) and the error of the predicted scores in points, means over splits. LiveCodeBench records no
tokens.
"""

import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import itembank as ib
from itembank.adaptive.limits import Budget
from itembank.adaptive.pool import SessionPool
from itembank.adaptive.recorded import Recorded, answer_from_record
from itembank.adaptive.session_spec import SessionSpec
from itembank.data.banks import Bank
from itembank.errors import ItembankWarning
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import FloatArray

EFFORT = re.compile(r"^(O1|O3-Mini|O4-Mini).*\((Low|Med|Medium|High)\)$")
REASONS = re.compile(r"^O[134]-|Thinking|QwQ|Gemini-2\.5|\(High\)")
N_ASKED, N_LEFT_OUT, N_SPLITS = 16, 10, 4
ORDER = {"Low": 0, "Med": 1, "Medium": 1, "High": 2}


def main() -> None:
    warnings.simplefilter("ignore", ItembankWarning)
    responses = loaded()
    rows = [row for split in range(N_SPLITS) for row in tried(responses, split)]
    table = pl.DataFrame(rows, schema=["model", "effort", "score", "ability", "error"], orient="row")
    means = table.group_by("model", "effort", maintain_order=True).agg(pl.col("score", "ability", "error").mean())
    print("| model | effort | score (%) | ability | error (points) |\n|---|---|---|---|---|")
    for model, effort, score, ability, error in means.sort("model", "effort").iter_rows():
        name = ("low", "medium", "high")[effort] if effort >= 0 else "-"
        print(f"| {model} | {name} | {100.0 * score:.1f} | {ability:+.2f} | {100.0 * error:.1f} |")


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


def tried(responses: ib.ResponseMatrix, split: int) -> Iterator[tuple[str, int, float, float, float]]:
    """Calibrate without ten models, and ask these and all conditions of reasoning models."""
    reasons = np.array([bool(REASONS.search(name)) for name in responses.model_ids])
    plain = np.random.default_rng(split).permutation(np.flatnonzero(~reasons))
    past = responses.take(models=np.sort(plain[N_LEFT_OUT:]))
    past = past.take(items=np.flatnonzero(past.observed.sum(axis=0) >= 5))
    bank = ib.build_bank(past, ib.calibrations.Variational(family="binomial"))
    found = [EFFORT.match(name) for name in responses.model_ids]
    tested = [*plain[:N_LEFT_OUT], *(row for row, match in enumerate(found) if match)]
    shared = responses.take(models=np.array(tested), items=responses.item_indices(past.item_ids))
    spec = SessionSpec("fisher", budget=Budget(n_items=N_ASKED), interval="model-based")
    pool, recorded = SessionPool.create(bank, spec), Recorded.of_responses(bank, shared)
    for row, place in enumerate(tested):
        session = ib.AdaptiveSession(pool)
        answer_from_record(session, recorded, row, n_answers=N_ASKED)
        theta = session.estimate().theta
        match = found[place]
        name, effort = (match[1], ORDER[match[2]]) if match else (f"{N_LEFT_OUT} that do not reason", -1)
        scores = shared.responses[row]
        yield name, effort, float(np.nanmean(scores)), float(theta[0]), error_of(bank, theta, scores)


def error_of(bank: Bank, theta: FloatArray, scores: FloatArray) -> float:
    """Mean absolute error of the predicted score on easy, medium and hard problems."""
    predicted, part = probability(bank.parameters, theta.reshape(1, -1))[0], bank.targets.scenario_index
    known = ~np.isnan(scores)
    gaps = [(predicted - scores)[known & (part == one)].mean() for one in np.unique(part[known])]
    return float(np.abs(gaps).mean())


if __name__ == "__main__":
    main()
