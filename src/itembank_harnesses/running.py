"""What runs in all harnesses share: items and prompts compared with the bank's, a folder of their own, a call."""

import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import DataError, DataWarning, IntegrityError, remedy, shown, warn
from itembank.files.atomic import held
from itembank.gating.stages import GatePlan
from itembank.readers.agreement import check_same_content as check_contents_of_bank
from itembank.readers.matching import Document, changed_contents
from itembank.responses.how_read import check_read_alike
from itembank.responses.prompts import DIFFERS, PROMPT_HASH, PROMPT_SETTINGS

STANDARD_ERROR: Final = 2


def untold_prompts(items: pl.DataFrame) -> str:
    """Say which prompts a bank's items cannot be compared with; empty where all can be."""
    if not {PROMPT_HASH, PROMPT_SETTINGS} & set(items.columns):
        return "the bank does not say how its items were asked, so prompts are not compared"
    hashes = items[PROMPT_HASH] if PROMPT_HASH in items.columns else pl.Series([None] * items.height, dtype=pl.String)
    n_mixed = int((hashes == DIFFERS).sum())
    if n_mixed:
        return f"past models had different prompts for {n_mixed} of {items.height} items: these are not compared"
    return ""


def compare_prompts(asked: pl.DataFrame, items: pl.DataFrame, *, advice: str, is_ignored: bool) -> bool:
    """Refuse items with other prompts than a bank's; or warn, and return whether they are, if ignored."""
    go_on = remedy("ignore_prompts=True", "--ignore-prompts")
    advice = f"No request was sent. {advice} To go on anyway: {go_on}."
    told = check_read_alike(asked, items, advice=advice, is_ignored=is_ignored, error=IntegrityError)
    if told:
        warn(f"{told}. The run goes on with these prompts.", DataWarning)
    return bool(told)


def usual_costs(bank: Bank, item_ids: Iterable[str], n_items: int) -> dict[str, float]:
    """Return what so many of these items cost past models on average, by each unit that is known."""
    is_wanted = bank.responses.items["item_id"].is_in(list(item_ids)).to_numpy()
    costs = {unit: cost[is_wanted] for unit, cost in bank.responses.expected_costs().items()}
    return {unit: n_items * float(np.nanmean(cost)) for unit, cost in costs.items() if not np.isnan(cost).all()}


def check_same_content(found: Mapping[str, Document], items: pl.DataFrame, harness: str) -> None:
    """Check that items are what they were when the bank was made; no model has been called yet."""
    changed = changed_contents(items, found, harness)
    if changed:
        tasks = shown(sorted({one.task for one in found.values()}))
        raise IntegrityError(
            f"items must be what past models were asked, got {len(changed)} of {len(found)} of task {tasks} with "
            f"another content: {shown(changed)}. No request was sent. The benchmark changed: run the version of the "
            "bank, or calibrate a new one."
        )


def check_gate(gate: GatePlan, bank: Bank, known: Collection[str], *, is_ignored: bool) -> None:
    """Refuse a gate whose items a run cannot find in the bank, or that asked its baseline something else.

    `known` holds the items that the run may ask.
    """
    absent = [item for item in gate.order if item not in known]
    if absent:
        raise DataError(
            f"the bank must hold all {len(gate.order)} items of the gate, of the tasks that are run, got {len(absent)} "
            f"that are not there: {shown(absent)}. No request was sent. Give a bank of the baseline's results "
            "(itembank calibrate), or start the gate on items of this one."
        )
    asked = gate.baseline.items
    check_contents_of_bank(asked, bank.responses.items)
    advice = "The gate's baseline had other prompts than past models: calibrate a bank of its own results."
    compare_prompts(asked, bank.responses.items, advice=advice, is_ignored=is_ignored)


@contextmanager
def alone_in(folder: Path, program: str) -> Iterator[tuple[int, ...]]:
    """Make a folder and keep other runs out of it; gives the handles by which a program that is called does so, too."""
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder) as handles:
        if handles is None:
            raise DataError(
                f"{folder}: another run goes on in this folder. If itembank was killed, that is its {program}: wait "
                "until it ends, or end it. Then give the command again."
            )
        yield handles


def call_program(words: Sequence[str], handles: tuple[int, ...], patience: float) -> int:
    """Call a harness's own command and return its exit status; its output goes to standard error.

    It holds these handles, should it live longer than this process. After Ctrl-C, which it hears too, it has `patience`
    seconds to end by itself.
    """
    with subprocess.Popen(words, stdout=STANDARD_ERROR, pass_fds=handles) as program:  # noqa: S603 (not ours)
        try:
            return program.wait()
        except KeyboardInterrupt:
            try:
                program.wait(patience)
            except subprocess.TimeoutExpired:
                program.terminate()
            raise
