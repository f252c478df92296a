"""What does `itembank check` find, and how often is it wrong? ``ITEMBANK_SHARED=... python -m benchmarks.fit_checks``.

Open LLM Leaderboard v1: a bank of 400 models, and 200 models that it does not hold, whose answers are spoilt in known
ways. Per draw of the models (five CPU-minutes; what is done is kept, further draws are added) prints how often

- a model is said to misfit, and a suspected group to be answered better than expected, after 50, 100, 200, 400 answers;
- a change within a session is found, in 100 answers that the session chose itself;
- an item is said to have drifted, and which of the marked ones had, also in banks of 10, 20 and 50 models;
- 95 % intervals of `estimate` from 100 random items hold, of models that misfit and of the others.
"""

import argparse
import dataclasses
import functools
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import itembank as ib
from itembank.calibration.calibration_specs import Variational
from itembank.diagnostics import check_fit, item_drift
from itembank.errors import ItembankWarning
from itembank.numerics.threads import one_blas_thread
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec

SEED = 15
N_CALIBRATION, N_DIMS = 400, 4
N_ITEMS = (50, 100, 200, 400)
LEAKED, KNOWN, FAILING = 0.2, 0.95, 0.1
FAULTS = ("clean", "leak", "items fail", "parser", "lost", "second half")
N_SESSIONS, N_ANSWERS = 40, 100
NEW_MODELS = (5, 10, 20, 50)
N_FEW_DRAWS, N_FEW_ITEMS = 4, 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--part", choices=list(PARTS), action="append", help="Repeatable.  [default: all]")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/fit_checks.parquet"))
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    done = pl.read_parquet(arguments.output) if arguments.output.exists() else pl.DataFrame()
    for draw in range(arguments.draws):
        for part in arguments.part or PARTS:
            if done.is_empty() or done.filter(draw=draw, part=part).is_empty():
                done = pl.concat([done, pl.DataFrame(list(rows_of(draw, part)))], how="diagonal_relaxed")
                done.write_parquet(arguments.output)
    show(done)


@one_blas_thread()
def rows_of(draw: int, part: str) -> Iterator[dict[str, object]]:
    """Yield every figure of a part, for one draw of the models."""
    bank, new = bank_and_new(draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        for row in PARTS[part](bank, new, np.random.default_rng([SEED, draw, list(PARTS).index(part)])):
            print(draw, part, row, flush=True)
            yield {"draw": draw, "part": part, **row}


@functools.lru_cache(maxsize=1)
def bank_and_new(draw: int) -> tuple[ib.Bank, ResponseMatrix]:
    """Make the bank of one draw, and return the models that it does not hold."""
    responses = ib.read_responses(Path(os.environ["ITEMBANK_SHARED"]) / "data" / "openllm1_core" / "responses.parquet")
    order = np.random.default_rng([SEED, draw]).permutation(responses.n_models)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ItembankWarning)
        spec = Variational(item_model="mirt", n_dims=N_DIMS)
        bank = ib.build_bank(responses.take(models=np.sort(order[:N_CALIBRATION])), spec)
    return bank, responses.take(models=np.sort(order[N_CALIBRATION:]))


def fit_rows(bank: ib.Bank, new: ResponseMatrix, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Yield how many models misfit, and how many are said to know the suspected items."""
    for n in N_ITEMS:
        items = rng.permutation(new.n_items)[:n]
        answers = new.take(items=items)
        is_leaked = rng.random(n) < LEAKED
        groups = {"suspected": [item for item, leaked in zip(answers.item_ids, is_leaked, strict=True) if leaked]}
        for fault in FAULTS:
            found = check_fit(bank, spoilt(answers, fault, is_leaked, rng), groups=groups).models
            yield {
                "fault": fault,
                "n": n,
                "misfits": np.mean([one.is_flagged for one in found]),
                "typicality below .05": np.mean([one.typicality < 0.05 for one in found]),
                "suspected higher": np.mean([bool(one.raised_groups) for one in found]),
            }


def spoilt(answers: ResponseMatrix, fault: str, is_leaked: np.ndarray, rng: np.random.Generator) -> ResponseMatrix:
    """Spoil the answers of every model."""
    values = answers.responses.copy()
    chance, columns = rng.random(values.shape), np.arange(answers.n_items)
    is_gsm8k = (answers.items["scenario"] == "gsm8k").to_numpy()
    wrong: Mapping[str, Any] = {
        "items fail": (rng.random(answers.n_items) < FAILING) & (chance < 0.7),
        "parser": is_gsm8k & (chance < 0.5),
        "lost": chance < 0.15,
        "second half": (columns >= answers.n_items // 2) & (chance < 0.4),
    }
    if fault in wrong:
        values[wrong[fault]] = 0.0
    if fault == "leak":
        values[is_leaked & (chance < KNOWN)] = 1.0
    return dataclasses.replace(answers, responses=values)


def session_rows(bank: ib.Bank, new: ResponseMatrix, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Yield how many adaptive sessions are said to change, clean ones and ones that fail from the middle on."""
    pool = prepare_sessions(bank, SessionSpec(interval="model-based"))
    column = {item: place for place, item in enumerate(new.item_ids)}
    for fault in ("clean", "second half"):
        flagged, starts, misfits = [], [], []
        for row in range(N_SESSIONS):
            session, order, values = AdaptiveSession(pool, seed=row), [], np.full((1, new.n_items), np.nan)
            while len(order) < N_ANSWERS and (asked := session.ask()):
                place = column[asked[0]]
                fails = fault != "clean" and len(order) >= N_ANSWERS // 2 and rng.random() < 0.4
                values[0, place] = 0.0 if fails else new.responses[row, place]
                session.tell(asked[0], values[0, place])
                order.append(asked[0])
            one = dataclasses.replace(new.take(models=np.array([row])), responses=values)
            name = one.model_ids[0]
            (found,) = check_fit(bank, one, order={name: order}, sessions={name: pool.spec}).models
            misfits.append(found.is_flagged)
            flagged.append(found.order.is_flagged)
            starts.append(found.order.first_answer if found.order.is_flagged else np.nan)
        start = float(np.nanmedian(starts)) if any(flagged) else float("nan")
        rates = {"misfits": np.mean(misfits), "changes": np.mean(flagged)}
        yield {"fault": fault, "n": N_ANSWERS, **rates, "from answer": start}


def drift_rows(bank: ib.Bank, new: ResponseMatrix, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Yield how many items are marked, where one in ten fails for six models in ten, and where none does."""
    for n_models in NEW_MODELS:
        for n_items in (200, new.n_items):
            answers = new.take(models=rng.choice(new.n_models, n_models, replace=False))
            values = answers.responses.copy()
            for row in values:
                row[rng.permutation(new.n_items)[n_items:]] = np.nan
            fails = rng.random(new.n_items) < FAILING
            spoiled = np.where(fails & (rng.random(values.shape) < 0.6) & ~np.isnan(values), 0.0, values)
            for fault, cells in (("clean", values), ("items fail", spoiled)):
                found = item_drift(bank, dataclasses.replace(answers, responses=cells))
                bad = {item for item, one in zip(new.item_ids, fails, strict=True) if one and fault != "clean"}
                marked, seen = {one.item_id for one in found.drifted}, {one.item_id for one in found.items}
                yield {
                    "fault": fault,
                    "models": n_models,
                    "n": n_items,
                    "marked": len(marked) / max(len(seen), 1),
                    "recall": len(marked & bad) / max(len(bad & seen), 1),
                    "precision": len(marked & bad) / max(len(marked), 1),
                }


def few_rows(bank: ib.Bank, new: ResponseMatrix, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Yield how many items of banks of few models are marked, by random new models and by the best hundred."""
    del bank
    for n_past in (10, 20, 50):
        for _ in range(N_FEW_DRAWS):
            models, items = rng.permutation(new.n_models), rng.choice(new.n_items, N_FEW_ITEMS, replace=False)
            spec = Variational(item_model="2pl", n_dims=1)
            few = ib.build_bank(new.take(models=np.sort(models[:n_past]), items=np.sort(items)), spec)
            others = new.take(models=models[n_past:], items=np.sort(items))
            best = np.argsort(-others.responses.mean(axis=1))[: others.n_models // 3]
            fails = rng.random(N_FEW_ITEMS) < FAILING
            for who, rows in (("random", np.arange(20)), ("best", rng.permutation(best)[:20])):
                answers = others.take(models=rows)
                spoiled = np.where(fails & (rng.random(answers.responses.shape) < 0.6), 0.0, answers.responses)
                for fault, cells in (("clean", answers.responses), ("items fail", spoiled)):
                    found = item_drift(few, dataclasses.replace(answers, responses=cells))
                    bad = {item for item, one in zip(answers.item_ids, fails, strict=True) if one and fault != "clean"}
                    marked = {one.item_id for one in found.drifted}
                    yield {
                        "fault": fault,
                        "models": n_past,
                        "who": who,
                        "marked": len(marked) / max(len(found.items), 1),
                        "largest z": max(abs(one.z) for one in found.items),
                        "recall": len(marked & bad) / max(len(bad), 1),
                        "precision": len(marked & bad) / max(len(marked), 1),
                    }


def interval_rows(bank: ib.Bank, new: ResponseMatrix, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Yield how often intervals of the overall score hold from 100 random items."""
    selection = ib.select(bank, 100, method="random", rng=SEED)
    answers = new.take(items=new.item_indices(selection.item_ids))
    is_leaked = rng.random(answers.n_items) < LEAKED
    truth = bank.targets.with_overall(bank.targets.scenario_means(new.responses))[:, -1]
    for fault in ("clean", "leak", "items fail", "lost"):
        given = spoilt(answers, fault, is_leaked, rng)
        estimates = ib.estimate(bank, given, selection=selection)
        flagged = np.array([one.is_flagged for one in check_fit(bank, given).models])
        low, high, value = (array[:, -1] for array in (estimates.low, estimates.high, estimates.value))
        for word, rows in (("misfits", flagged), ("fits", ~flagged)):
            if rows.any():
                yield {
                    "fault": fault,
                    "n": 100,
                    "verdict": word,
                    "models": int(rows.sum()),
                    "coverage": np.mean((low <= truth)[rows] & (truth <= high)[rows]),
                    "half-width": 50.0 * np.mean((high - low)[rows]),
                    "error": 100.0 * np.mean(np.abs(value - truth)[rows]),
                    "bias": 100.0 * np.mean((value - truth)[rows]),
                }


PARTS = {"fit": fit_rows, "session": session_rows, "interval": interval_rows, "drift": drift_rows, "few": few_rows}


def show(done: pl.DataFrame) -> None:
    """Print the means over draws, a table for each part."""
    for part in done["part"].unique(maintain_order=True):
        rows = done.filter(part=part)
        rows = rows[[column.name for column in rows if column.null_count() < rows.height]].drop("part", "draw")
        keys = [name for name in ("fault", "models", "who", "n", "verdict") if name in rows.columns]
        if part == "interval":
            keys.remove("models")
        print(part, rows.group_by(keys, maintain_order=True).mean())


if __name__ == "__main__":
    pl.Config.set_tbl_rows(99)
    main()
