"""A bank of the task `quiz`, made from simulated past models."""

import gc

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import save_bank
from itembank.calibration.build import calibrate
from itembank.responses.responses import ResponseMatrix
from itembank_harnesses.readers.inspect_samples import content_hash


@pytest.fixture(scope="module", autouse=True)
def no_streams_left():
    """Let Inspect's streams go where their warnings are ignored, and not in the middle of a test of something else."""
    yield
    gc.collect()


def simulated_bank(contents, ids=None, task="quiz"):
    """Bank of a Rasch family over a task's samples of these content hashes, numbered from 1 unless they have ids."""
    rng = np.random.default_rng(7)
    n_items, n_models = len(contents), 30
    skill, difficulty = rng.normal(size=(n_models, 1)), np.linspace(-1.5, 1.5, n_items)
    responses = (rng.random((n_models, n_items)) < 1 / (1 + np.exp(-2 * (skill - difficulty)))).astype(float)
    ids = ids or [str(number) for number in range(1, n_items + 1)]
    items = pl.DataFrame(
        {
            "item_id": [f"{task}/{one}" for one in ids],
            "scenario": [task] * n_items,
            "task": [task] * n_items,
            "sample_id": ids,
            "metric": ["match"] * n_items,
            "content_hash": contents,
        }
    )
    models = [f"past-{number}" for number in range(n_models)]
    return calibrate(ResponseMatrix.create(responses, model_ids=models, items=items))


@pytest.fixture(scope="module")
def bank_path(tmp_path_factory, few_folds):
    from tests.harnesses.inspect.toys import samples  # noqa: PLC0415 (imports Inspect)

    path = tmp_path_factory.mktemp("inspect") / "bank"
    save_bank(simulated_bank([content_hash(sample.input, sample.target) for sample in samples()]), path)
    return path
