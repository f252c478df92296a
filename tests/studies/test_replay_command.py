"""`itembank replay`: the numbers of sessions driven from a shell, all models at once."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.irt.bernoulli import probability
from tests.bank.banks import make_bank
from tests.cli.session.loops import FAST

N_MODELS = 3
QUICK = FAST


@pytest.fixture
def data(tmp_path):
    """A bank, and new models that answered everything; the folder of both."""
    bank = make_bank(n_models=15, n_items=60, with_extras=True)
    bank.save(tmp_path / "bank")
    rng = np.random.default_rng(1)
    chances = probability(bank.parameters, rng.normal(size=(N_MODELS, 2)))
    right = (rng.random(chances.shape) < chances).astype(float)
    costs = {"output_tokens": rng.integers(1, 99, chances.shape).astype(float)}
    names = [f"new-{row}" for row in range(N_MODELS)]
    recorded = ib.ResponseMatrix.create(right, model_ids=names, items=bank.responses.items, costs=costs)
    ib.write_responses(recorded, tmp_path / "new.parquet")
    return tmp_path


def replayed(run, data, *options):
    outcome = run("replay", data / "bank", data / "new.parquet", *options, "--format", "json")
    return outcome, outcome.json["rows"]


def answers(data):
    table = pl.read_parquet(data / "new.parquet").cast({"model_id": pl.String, "item_id": pl.String})
    return {(row["model_id"], row["item_id"]): row for row in table.to_dicts()}


SAME = ("target", "estimate", "low", "high", "standard_error", "n_items", "n_total")


SCRIPT = """
set -e
itembank() {{ {python} -m itembank --quiet "$@"; }}
itembank session start bank -o run.jsonl --model-id new-1 --max-items 4
while items=$(itembank session ask run.jsonl -n 2 --format ids); [ -n "$items" ]; do
  for item in $items; do
    response=$(grep "^new-1,$item," answers.csv | cut -d, -f3)
    itembank session tell run.jsonl "$item" --response "$response" > told.json
  done
done
itembank session status run.jsonl --format json
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_shell_loop_ends_with_the_numbers_of_replay(run, data):
    _, rows = replayed(run, data, "--max-items", 4, "--batch", 2)
    table = pl.read_parquet(data / "new.parquet").select("model_id", "item_id", "response")
    table.cast({"model_id": pl.String, "item_id": pl.String}).write_csv(data / "answers.csv", include_header=False)
    script = SCRIPT.format(python=shlex.quote(sys.executable))
    done = subprocess.run([shutil.which("bash"), "-c", script], cwd=data, capture_output=True, text=True, check=True)
    told, mine = json.loads(done.stdout), [row for row in rows if row["model_id"] == "new-1"]
    assert [{name: row[name] for name in SAME} for row in mine] == [
        {name: row[name] for name in SAME} for row in told["scores"]
    ]


def test_the_exit_code_says_whether_every_model_was_precise(run, data):
    outcome, rows = replayed(run, data, "--half-width", 0.3, *QUICK)
    assert (outcome.code, {row["reason_stopped"] for row in rows}) == (0, {"half-width of overall"})
    outcome, rows = replayed(run, data, "--half-width", 0.01, "--max-items", 3, *QUICK)
    assert (outcome.code, "3 of 3 sessions ended without the precision asked for" in outcome.err) == (3, True)
    assert {row["reason_stopped"] for row in rows} == {"budget: 3 items"}
    assert replayed(run, data, "--max-items", 3, *QUICK)[0].code == 0  # none was asked for


def test_rows_are_those_of_estimate_and_say_how_the_session_went(run, data):
    outcome, rows = replayed(run, data, "--max-items", 5, "--cost", "output_tokens", *QUICK)
    assert outcome.code == 0
    estimated = run.json("estimate", data / "bank", data / "new.parquet")["rows"]
    assert len(rows) == len(estimated) == N_MODELS * 4
    own = {"n_answered", "n_failed", "cost", "cost_unit", "reason_stopped", "is_precise"}
    assert set(rows[0]) == set(estimated[0]) | own
    command = ("replay", data / "bank", data / "new.parquet", "--max-items", 5, "--cost", "output_tokens", *QUICK)
    text = run(*command).out
    assert "cost (output_tokens)" in text
    assert text.count("budget: 5 items") == N_MODELS
    in_limit = replayed(run, data, "--max-items", 5, "--max-cost", "output_tokens=9999", *QUICK)[1]
    assert {row["cost_unit"] for row in in_limit} == {"output_tokens"}
    assert [row["cost"] for row in in_limit] != [row["cost"] for row in rows]  # cheap items came first there
    assert all(0.0 < row["cost"] < 5 * 99 for row in in_limit)
    own = [f"{row['n_items']}/{row['n_total']}" for row in rows if row["target"] == "overall"]
    assert [line.split()[-6] for line in text.splitlines() if "budget: 5" in line] == own


@pytest.mark.parametrize("name", ["asked.csv", "asked.parquet"])
def test_the_items_asked_can_be_kept(run, data, name):
    outcome, _ = replayed(run, data, "--max-items", 4, "--batch", 2, "-o", data / name, *QUICK)
    assert outcome.code == 0
    table = pl.read_csv(data / name) if name.endswith("csv") else pl.read_parquet(data / name)
    assert table["step"].to_list() == N_MODELS * [1, 2, 3, 4]
    known = answers(data)
    for row in table.to_dicts():
        one = known[row["model_id"], row["item_id"]]
        assert (row["response"], row["output_tokens"]) == (one["response"], one["output_tokens"])


@pytest.mark.slow
def test_mistakes_are_named_and_nothing_is_written(run, data):
    common = ("replay", data / "bank", data / "new.parquet")
    for options, code, message in (
        (("-o", data / "asked.txt"), 2, "must end in .csv or .parquet, got 'asked.txt'"),
        (("-o", data / "new.parquet" / "asked.csv"), 2, "asked.csv cannot be written"),
        (("--jobs", 0), 2, "n_jobs must be -1"),
        (("--cost", "seconds", "-o", data / "asked.csv"), 1, "'seconds'"),
        (("--half-width", "physics=0.1"), 2, "'physics'"),
    ):
        outcome = run(*common, *options)
        assert (outcome.code, outcome.out) == (code, "")
        assert message in outcome.err
    (data / "other.csv").write_text("model_id,item_id,response\na,elsewhere,1\n")
    run.fails(1, "'elsewhere'", "replay", data / "bank", data / "other.csv")
    assert not [path for path in Path(data).iterdir() if path.name.startswith("asked")]
