"""The same items and estimates whatever the order of a file's rows, and whatever kernel adds up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import blas_kernels as kernels
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import Variational
from itembank.estimation.estimate import estimate
from itembank.planning.select import select
from itembank.responses.responses import ResponseMatrix

QUICK = ("v-optimal", "anchor-correctness", "anchor-irt", "stratified")
SELECTIONS = (*QUICK, "auto")
ESTIMATES = ("p-irt", "gp-irt", "factor", "ridge", "auto")
# every item is there twice, which makes chance look like kinship
pytestmark = pytest.mark.filterwarnings("ignore:.* models answer like another one")
REPOSITORY = Path(__file__).resolve().parents[2]


def made_responses():
    """30 models, 70 items of two scenarios with many equal answers: ties wherever there can be any."""
    rng = np.random.default_rng(8)
    ability, difficulty = rng.normal(size=(30, 1)), np.repeat(rng.normal(size=35), 2)
    answers = (rng.random((30, 35)) < 1.0 / (1.0 + np.exp(difficulty[::2] - 1.5 * ability))).astype(float)
    return ResponseMatrix.create(
        np.repeat(answers, 2, axis=1),
        model_ids=[f"model-{number:02d}" for number in range(30)],
        item_ids=[f"item-{number:02d}" for number in range(70)],
        scenarios=["easy"] * 30 + ["hard"] * 40,
    )


def shuffled_responses():
    """The same, models and the items of each scenario in another order."""
    rng = np.random.default_rng(1)
    within = np.concatenate([rng.permutation(30), 30 + rng.permutation(40)])
    return made_responses().take(models=rng.permutation(30), items=within)


def bank_of(responses):
    """Bank of 24 models, and where the other six stand."""
    new = [row for row, name in enumerate(responses.model_ids) if int(name[-2:]) >= 24]
    past = [row for row in range(responses.n_models) if row not in new]
    return calibrate(responses.take(models=np.array(past)), Variational("mirt", n_dims=2), rng=0), new


def chosen_and_estimated(responses):
    """Ids by selection and values by estimate, of six models that the bank does not know."""
    bank, new = bank_of(responses)
    chosen = {method: select(bank, 12, method=method, rng=0) for method in SELECTIONS}
    asked = responses.take(models=np.array(sorted(new, key=lambda row: responses.model_ids[row])))
    found = {name: estimate(bank, asked, selection=chosen["v-optimal"], method=name).value for name in ESTIMATES}
    ids = {method: sorted(one.item_ids) for method, one in chosen.items()}
    return ids, {name: value.tolist() for name, value in found.items()}


@pytest.fixture(scope="module")
def found():
    return chosen_and_estimated(made_responses())


def test_the_order_of_models_and_items_chooses_nothing():
    one, other = bank_of(made_responses())[0], bank_of(shuffled_responses())[0]
    for method in QUICK:
        ids = [set(select(bank, 12, method=method, rng=0).item_ids) for bank in (one, other)]
        assert ids[0] == ids[1], method


@pytest.mark.slow
def test_another_kernel_chooses_the_same_items_and_gives_the_same_estimates(found):
    other = kernels.second([(name, kernels.code_of(name)) for name in kernels.KNOWN], kernels.code_of(None))
    if other is None:
        pytest.skip("this processor has one BLAS kernel only")
    here = "tests.planning.test_every_processor"
    show = f"import json, {here} as here; print(json.dumps(here.chosen_and_estimated(here.made_responses())))"
    environment, command = {**os.environ, kernels.VARIABLE: other}, [sys.executable, "-c", show]
    printed = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    ids, values = json.loads(printed.stdout)
    assert ids == found[0]
    for name, value in values.items():
        np.testing.assert_allclose(value, found[1][name], atol=1e-6, err_msg=name)
