import numpy as np
import pytest
from scipy.special import expit

from itembank.bank.bank_files import load_bank
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.cli.conftest import spec_file

N_MODELS, N_ITEMS = 20, 12


def simulated(seed=0):
    rng = np.random.default_rng(seed)
    chances = expit(rng.normal(size=(N_MODELS, 1)) - rng.normal(size=N_ITEMS))
    return rng, chances, ["math"] * 6 + ["law"] * 6


@pytest.fixture
def probabilities(tmp_path):
    rng, chances, scenarios = simulated()
    values = np.clip(rng.beta(20 * chances, 20 * (1 - chances)), 1e-4, 1 - 1e-4)
    write_responses(ResponseMatrix.create(values, scenarios=scenarios), tmp_path / "probabilities.parquet")
    return tmp_path / "probabilities.parquet"


@pytest.fixture
def counts(tmp_path):
    rng, chances, scenarios = simulated()
    values = rng.binomial(8, chances) / 8
    trials = np.full(values.shape, 8)
    write_responses(ResponseMatrix.create(values, n_trials=trials, scenarios=scenarios), tmp_path / "counts.parquet")
    return tmp_path / "counts.parquet"


def calibrated(run, source, tmp_path, *options):
    run.ok("calibrate", source, "-o", tmp_path / "bank", "--no-folds", "--item-model", "2pl", *options)
    return load_bank(tmp_path / "bank")


def test_probabilities_have_a_precision_for_each_scenario(run, probabilities, tmp_path):
    bank = calibrated(run, probabilities, tmp_path, "--family", "beta")
    assert bank.parameters.family == "beta"
    assert np.unique(bank.parameters.precision).size == 2
    content = run.json("info", tmp_path / "bank")
    assert content["family"] == "beta"
    shown = [row["precision"] for row in content["scenarios"]]
    np.testing.assert_allclose(shown[:2], bank.parameters.precision[[0, -1]])
    assert shown[2] == pytest.approx(np.sqrt(shown[0] * shown[1]))


@pytest.mark.parametrize(("given", "expected"), [("'global'", None), ("12.5", 12.5)])
def test_a_precision_can_be_common_or_given(run, probabilities, tmp_path, given, expected):
    bank = calibrated(run, probabilities, tmp_path, "--family", "beta", *spec_file(tmp_path, f"precision = {given}"))
    (found,) = np.unique(bank.parameters.precision)
    if expected is not None:
        assert found == expected
        assert bank.calibration.log_precision_error is None


def test_known_trials_make_counts(run, counts, tmp_path):
    bank = calibrated(run, counts, tmp_path)
    assert (bank.parameters.family, dict(bank.calibration.thresholds)) == ("binomial", {})


def test_positive_slopes_mean_one_ability(run, counts, tmp_path):
    run.ok(
        "calibrate",
        counts,
        "-o",
        tmp_path / "bank",
        "--no-folds",
        *spec_file(tmp_path, "positive_discrimination = true"),
    )
    calibration = load_bank(tmp_path / "bank").calibration
    assert (calibration.item_model, calibration.options["positive_discrimination"]) == ("2pl", True)
