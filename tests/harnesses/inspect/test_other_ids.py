"""A bank of instance ids, which no log of Inspect made, runs on a task that is called otherwise."""

import json

import polars as pl
import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate

from itembank.bank.bank_files import save_bank
from itembank.calibration.build import calibrate
from itembank.errors import IntegrityError
from itembank.planning.select import select
from itembank.readers.rows import content_digest
from itembank.responses.responses import ResponseMatrix
from itembank_harnesses.inspect.tasks import subset
from tests.harnesses.inspect.conftest import simulated_bank
from tests.harnesses.inspect.running import OF_INSPECT, metrics
from tests.harnesses.inspect.running import run as run_task
from tests.harnesses.inspect.toys import Calls, samples

pytestmark = OF_INSPECT
IDS = [f"org__repo-{number}" for number in range(1, 25)]


@pytest.fixture(scope="module")
def place(tmp_path_factory, few_folds):
    """A folder with a bank that knows ids and digests of input and target, and a selection."""
    folder = tmp_path_factory.mktemp("native")
    past = simulated_bank([None] * 24).responses
    digests = [content_digest(f"Question {number} ", f"answer {number}") for number in range(1, 25)]
    items = pl.DataFrame({"item_id": IDS, "content_hash": digests, "content_fields": ['["input", "target"]'] * 24})
    bank = calibrate(ResponseMatrix.create(past.responses, model_ids=past.model_ids, items=items))
    save_bank(bank, folder / "bank")
    select(bank, 8, rng=0).save(folder / "chosen.json")
    return folder


@pytest.mark.parametrize("way", ["ids", "metadata", "content"])
def test_samples_are_found_and_the_log_has_the_bank_s_ids(place, run, tmp_path, way):
    @task(name="swe_bench_mini")
    def swe_bench_mini(changed: int = 0) -> Task:
        every = samples(range(1, changed + 1))[::-1]
        for sample in every:
            native = IDS[sample.id - 1]
            sample.id = native if way == "ids" else None
            sample.metadata = {"repository": {"name": native}} if way == "metadata" else {}
        return Task(dataset=MemoryDataset(every), solver=generate(), scorer=match())

    chosen = json.loads((place / "chosen.json").read_text())["items"]
    rule = {"metadata": "doc.repository.name"}.get(way, "auto")
    Calls.reset()
    made = subset("swe_bench_mini", str(place / "bank"), str(place / "chosen.json"), match=rule)
    log = run_task(made, tmp_path)
    assert sorted(str(sample.id) for sample in log.samples) == sorted(one["item_id"] for one in chosen)
    assert sorted(IDS[number - 1] for number in Calls.made) == sorted(one["item_id"] for one in chosen)
    words = ("estimate", place / "bank", tmp_path, "--selection", place / "chosen.json", "--format", "json")
    read = run.ok(*words)
    assert read.json["rows"][-1]["estimate"] == pytest.approx(metrics(log)["overall"])
    if way == "ids":
        with pytest.raises(IntegrityError, match=r"with another content: 'org__repo-"):
            subset("swe_bench_mini", str(place / "bank"), str(place / "chosen.json"), task_args={"changed": 24})
