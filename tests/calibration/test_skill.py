"""Abilities that are not skill: siblings who guess alike lead a 2PL with slopes of both signs astray."""

import json

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP, Variational
from itembank.calibration.fit_item_model import fit_item_model, score_correlation
from itembank.calibration.fits import FitData
from itembank.errors import DataWarning
from itembank.pages.bank_page import bank_page
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.scenario_fits import default_spec
from tests.calibration.simulated import guessing_siblings

POSITIVE = Variational("2pl", positive_discrimination=True)


@pytest.fixture(scope="module")
def siblings():
    return guessing_siblings()


@pytest.fixture(scope="module")
def bank(siblings):
    with pytest.warns(DataWarning, match="abilities are not skill"):
        return calibrate(siblings[1], Variational("2pl"))


def correlation(one, other):
    return float(np.corrcoef(one, other)[0, 1])


@pytest.mark.filterwarnings("ignore:slopes should be at most")
@pytest.mark.parametrize("spec", [Variational("2pl"), JointMAP("2pl")])
def test_slopes_of_both_signs_follow_guesses_and_it_is_said(siblings, spec):
    skill, responses = siblings
    with pytest.warns(DataWarning, match=r"not skill: their correlation with the models' scores is -?0\.\d\d, less"):
        found = fit_item_model(responses, spec)
    score = responses.responses.mean(axis=1)
    assert found.score_correlation == pytest.approx(correlation(found.abilities[:, 0], score), abs=1e-9)
    assert abs(correlation(found.abilities[:, 0], skill)) < 0.5


@pytest.mark.parametrize("spec", [default_spec, POSITIVE, Variational("1pl")])
def test_slopes_above_zero_follow_skill(siblings, spec, recwarn):
    """As the warning advises, and as laws of scaling fit right and wrong answers."""
    skill, responses = siblings
    found = fit_item_model(responses, spec(responses) if callable(spec) else spec)
    assert found.score_correlation > 0.75
    assert correlation(found.abilities[:, 0], skill) > 0.6
    assert found.caution == ""
    assert not [one for one in recwarn if "skill" in str(one.message)]


def test_repr_page_and_file_say_it(bank, tmp_path):
    save_bank(bank, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    assert loaded.calibration.score_correlation == bank.calibration.score_correlation
    assert "Take item model '1pl', or the variational '2pl' with positive" in loaded.calibration.caution
    assert loaded.calibration.caution in repr(loaded)
    assert loaded.calibration.caution in str(bank_page(loaded).lead)
    # banks of earlier releases do not know
    record = json.loads((tmp_path / "bank" / "bank.json").read_text())
    assert record["calibration"]["score_correlation"] == bank.calibration.score_correlation


def test_abilities_on_the_arc_challenge_are_not_skill(shared_dir):
    """Of 90 encoders; 34 % of the slopes are negative, and slopes above zero bring the correlation to .92."""
    table = pl.read_parquet(shared_dir / "data" / "nlu29" / "irsl8.parquet").filter(
        pl.col("scenario") == "arc-challenge"
    )
    wide = table.pivot(on="item_id", index="model_id", values="response").drop("model_id")
    responses = ResponseMatrix.create(wide.to_numpy().astype(float), scenarios=["arc-challenge"] * wide.width)
    with pytest.warns(DataWarning, match="items of 'arc-challenge': The abilities are not skill"):
        assert fit_item_model(responses, Variational("2pl")).score_correlation < 0.7
    assert fit_item_model(responses, default_spec(responses)).score_correlation > 0.85


def test_the_correlation_is_pearsons_and_signed():
    rng = np.random.default_rng(0)
    answers = (rng.random((30, 40)) < 0.5).astype(float)
    abilities = rng.normal(size=(30, 1))
    data = FitData(answers, None, np.zeros(40))
    wanted = correlation(abilities[:, 0], answers.mean(axis=1))
    assert score_correlation(data, abilities) == pytest.approx(wanted, abs=1e-12)
    assert score_correlation(data, -abilities) == pytest.approx(-wanted, abs=1e-12)
    uncopied = FitData(answers, None, np.zeros(40), columns=np.arange(40))
    assert score_correlation(uncopied, abilities) == pytest.approx(wanted, abs=1e-6)
    two = np.column_stack([abilities[:, 0], rng.normal(size=30)])
    fitted = np.column_stack([np.ones(30), two])
    score = answers.mean(axis=1)
    best = fitted @ np.linalg.lstsq(fitted, score, rcond=None)[0]
    assert score_correlation(data, two) == pytest.approx(correlation(best, score), abs=1e-9)


def test_models_are_compared_over_the_items_that_they_share():
    """Strong models answered hard items and weak ones easy items: their means say the opposite of their skill."""
    rng = np.random.default_rng(1)
    ability = np.linspace(-2.0, 2.0, 40)
    difficulty = np.concatenate([np.full(60, -4.0), np.zeros(10), np.full(60, 4.0)])
    answers = (rng.random((40, 130)) < 1.0 / (1.0 + np.exp(difficulty - ability[:, None]))).astype(float)
    observed = np.ones((40, 130), dtype=bool)
    observed[:20, 70:], observed[20:, :60] = False, False
    means = np.where(observed, answers, 0.0).sum(axis=1) / observed.sum(axis=1)
    assert correlation(ability, means) < -0.5
    data = FitData(np.where(observed, answers, 0.0), observed, np.zeros(130))
    assert score_correlation(data, ability[:, None]) > 0.7
