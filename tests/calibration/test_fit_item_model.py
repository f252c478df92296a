import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import betabinom, binom

from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration import fit_item_model as fitting
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational, has_family
from itembank.calibration.dimensions import choose_n_dims
from itembank.calibration.fits import Fit, FitData
from itembank.calibration.variational import fit
from itembank.errors import ConvergenceWarning, DataError, DataWarning, ParameterError
from itembank.estimation.folds import spec_of
from itembank.irt.bernoulli import probability
from itembank.irt.parameters import AbilityPrior
from itembank.pages.bank_page import bank_page
from itembank.responses import responses as response_matrices
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.scenario_fits import default_spec
from tests.calibration.simulated import guessing_siblings, simulate
from tests.numerics.compare import alike


def matrix_of(data, **columns):
    responses = data.responses if data.observed is None else np.where(data.observed, data.responses, np.nan)
    return ResponseMatrix.create(responses, **columns)


@pytest.mark.parametrize(
    "spec",
    [Variational(), Variational("1pl"), Variational("mirt", n_dims=2), JointMAP(), MarginalML(), "variational"],
    ids=lambda spec: spec if isinstance(spec, str) else f"{type(spec).__name__} {spec.item_model}",
)
def test_every_method_gives_parameters_for_every_item_and_leaves_its_input_alone(spec):
    data = simulate(60, 50, missing=0.1, seed=1).data
    data.responses[:, 7] = 1.0
    data.responses[~data.observed] = 0.0
    matrix = matrix_of(data)
    before = matrix.responses.copy()
    found = fitting.fit_item_model(matrix, spec)
    assert_array_equal(matrix.responses, before)
    assert found.converged
    assert found.n_items == 50
    assert found.abilities.shape == (60, found.n_dims)
    assert np.flatnonzero(found.is_degenerate).tolist() == [7]
    assert np.isfinite(found.standard_errors).all()
    chances = probability(found.parameters, found.abilities)
    assert chances[:, 7].mean() > 0.9
    observed = data.observed & ~found.is_degenerate
    assert np.mean((chances - data.responses)[observed] ** 2) < 0.2  # 0.25 says nothing


def test_fractions_are_made_binary_and_thresholds_kept():
    truth = simulate(60, 50, seed=2)
    fractions = np.clip(truth.data.responses * 0.7 + 0.1, 0.0, 1.0)
    values = np.column_stack([fractions[:, :30], truth.data.responses[:, 30:]])
    with pytest.warns(DataWarning, match=r"'graded' lie between 0 and 1, .* right from 0.8 on.* n_trials"):
        found = fitting.fit_item_model(ResponseMatrix.create(values, scenarios=["graded"] * 30 + ["binary"] * 20))
    assert set(found.thresholds) == {"graded"}
    assert 0.1 < found.thresholds["graded"] <= 0.8
    assert_allclose(found.parameters.loadings, fitting.fit_item_model(matrix_of(truth.data)).parameters.loadings)


def with_nobody(model, item):
    """Answers of ten models to eight items but for one of either."""
    responses = simulate(10, 8, seed=4).data.responses
    responses[model], responses[:, item] = np.nan, np.nan
    return responses


@pytest.mark.parametrize(
    ("responses", "spec", "error", "message"),
    [
        (np.array([[0.0, 1.0], [1.0, 0.0]]), Variational(), DataError, "at least 3 models, got 2"),
        (with_nobody(3, 5), Variational(), DataError, r"'model-4'.*'item-6'"),
        (
            np.tile([0.0, 1.0, 1.0, 0.0], (5, 1)),
            Variational(),
            DataError,
            "at least one item must tell models apart, got 4 items",
        ),
        (np.eye(8), "bayes", ParameterError, "'variational', 'map', 'mml'"),
        (np.eye(8), Variational(known_guessing=True), DataError, "'chance' or 'n_options'"),
    ],
    ids=["models", "nobody", "alike", "method", "guessing"],
)
def test_what_cannot_be_fitted_is_refused(responses, spec, error, message):
    with pytest.raises(error, match=message):
        fitting.fit_item_model(ResponseMatrix.create(responses), spec)


def test_stopping_early_warns_with_advice():
    with pytest.warns(ConvergenceWarning, match="max_iterations"):
        found = fitting.fit_item_model(matrix_of(simulate(30, 20, seed=6).data), Variational(max_iterations=1))
    assert not found.converged


@pytest.mark.parametrize("chance", [None, 1.0, -0.1, float("nan")])
def test_chance_comes_first_then_options_and_items_without_a_usable_one_are_named(chance):
    items = pl.DataFrame({"item_id": ["a", "b"], "chance": [0.1, None], "n_options": [4, 5]})
    assert_allclose(fitting.known_lower_asymptote(items), [0.1, 0.2])
    items = pl.DataFrame({"item_id": ["a", "b"], "chance": [0.1, chance]}, schema_overrides={"chance": pl.Float64})
    with pytest.raises(DataError, match=r"chance must lie in .* 1 of 2 items: 'b'"):
        fitting.known_lower_asymptote(items)


def test_known_guessing_becomes_the_lower_asymptote():
    data = simulate(60, 30, guessing=0.25, seed=8).data
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(30)], "n_options": [4] * 30})
    found = fitting.fit_item_model(matrix_of(data, items=items), Variational(known_guessing=True))
    assert_array_equal(found.parameters.lower_asymptote, 0.25)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_many_answers_are_fitted_where_they_are_to_the_same_end(missing, monkeypatch):
    rng = np.random.default_rng(8)
    ability, slope = rng.normal(size=(50, 1)), rng.lognormal(0.0, 0.3, size=60)
    answers = (expit(slope * ability + rng.normal(size=60)) > rng.random((50, 60))).astype(float)
    answers[rng.random(answers.shape) < missing] = np.nan
    answers[:, 7], answers[:, 30] = 1.0, 0.0  # which all models answered alike
    spec = Variational("2pl", tolerance=1e-8)
    expected = fitting.fit_item_model(ResponseMatrix.create(answers), spec)
    monkeypatch.setattr(response_matrices, "LARGE", 1000)
    monkeypatch.setattr(fit, "SUBSET_SIZE", 40)
    found = fitting.fit_item_model(ResponseMatrix.create(answers), spec)
    again = fitting.fit_item_model(ResponseMatrix.create(answers.astype(np.float32)), spec)
    assert {7, 30} <= set(np.flatnonzero(found.is_degenerate).tolist())
    assert_array_equal(found.is_degenerate, expected.is_degenerate)
    assert_array_equal(again.parameters.loadings, found.parameters.loadings)
    alike(found.parameters, expected.parameters, "loadings intercept", atol=1e-3)
    alike(found, expected, "abilities", atol=1e-3)


AGREE = "attempts at one item agree more than chance"


def one_cell(right, trials, logit, doubt=0.0):
    """One model, one item, whose logit is known but for the variance of the intercept."""
    fit = Fit(
        np.zeros((1, 1)), np.array([logit]), np.diag([0.0, doubt])[None], np.zeros((1, 1)), np.zeros((1, 1, 1)),
        AbilityPrior.standard(1), True, 1, "", np.zeros(1),
    )  # fmt: skip
    rates, n_trials = np.array([[right / trials]]), np.array([[trials]])
    return fitting.agreement_beyond(FitData(rates, None, np.zeros(1), family="binomial", n_trials=n_trials), fit)


def attempts(n_models=27, n_items=30, *, n_trials, seed=0, correlation=1.0):
    """Rasch answers; the trials of a cell are the same one, independent ones, or something between."""
    rng = np.random.default_rng(seed)
    chances = expit(rng.normal(size=(n_models, 1)) - rng.normal(size=n_items))
    if 0.0 < correlation < 1.0:
        precision = 1.0 / correlation - 1.0
        chances = rng.beta(chances * precision, (1.0 - chances) * precision)
    draws = 1 if correlation == 1.0 else n_trials
    rates = rng.binomial(draws, chances) / draws
    return ResponseMatrix.create(rates, n_trials=np.full(rates.shape, n_trials))


@pytest.mark.parametrize("n_trials", [2, 7])
@pytest.mark.parametrize("precision", [0.3, 4.0])
@pytest.mark.parametrize("logit", [-2.0, 0.4])
def test_the_correlation_has_the_expectation_of_the_distribution(n_trials, precision, logit):
    chance, counts = expit(logit), np.arange(n_trials + 1)
    found = [one_cell(float(k), float(n_trials), logit) for k in counts]
    independent = binom.pmf(counts, n_trials, chance)
    agreeing = betabinom.pmf(counts, n_trials, chance * precision, (1.0 - chance) * precision)
    correlations, sizes = np.array([(one.correlation, one.standard_errors) for one in found]).T
    assert independent @ correlations == pytest.approx(0.0, abs=1e-12)
    assert agreeing @ correlations == pytest.approx(1.0 / (precision + 1.0))
    assert independent @ sizes**2 == pytest.approx(1.0)


def test_what_the_fit_has_taken_from_the_pairs_is_given_back_and_single_answers_say_nothing():
    """The posterior variance of a chance p is that of the logit times (p (1 - p))^2, where it is small."""
    chance = expit(0.5)
    gain = one_cell(3.0, 5.0, 0.5, doubt=1e-4).correlation - one_cell(3.0, 5.0, 0.5).correlation
    drift = 0.5 * 1e-4 * (1.0 - 2.0 * chance)  # the mean chance moves too, to which the pairs answer
    assert gain == pytest.approx(1e-4 * chance * (1.0 - chance), abs=3.0 * abs(drift))
    assert gain > 0.0
    assert one_cell(1.0, 1.0, -3.0, doubt=0.5) == fitting.Agreement(0.0, 0.0)


@pytest.mark.parametrize("spec", [Variational(), JointMAP(), MarginalML()])
def test_independent_attempts_stay_binomial(spec):
    found = [
        fitting.fit_item_model(attempts(n_trials=n, seed=seed, correlation=0.0), spec) for n, seed in ((2, 1), (40, 2))
    ]
    assert {one.parameters.family for one in found} == {"binomial"}


@pytest.mark.parametrize("correlation", [0.3, 1.0])
def test_agreeing_attempts_are_taken_for_what_they_are(correlation):
    responses = attempts(40, 60, n_trials=20, correlation=correlation)
    with pytest.warns(DataWarning, match=AGREE) as warned:
        found = fitting.fit_item_model(responses)
    assert len(warned) == 1
    said = float(str(warned[0].message).split("correlation ")[1].split(")")[0])
    fitted = 1.0 / (found.parameters.precision[0] + 1.0)
    assert [said, fitted] == pytest.approx([correlation] * 2, abs=0.06)
    assert found.parameters.family == spec_of(found).family == "beta-binomial"
    assert "family" not in found.options


def test_identical_attempts_say_what_one_of_them_says():
    single = fitting.fit_item_model(attempts(n_trials=1))
    with pytest.warns(DataWarning, match=AGREE):
        repeated = fitting.fit_item_model(attempts(n_trials=100))
    assert_allclose(repeated.parameters.loadings, single.parameters.loadings, atol=0.15)
    alike(repeated, single, "abilities", atol=0.1)
    alike(repeated, single, "standard_errors", rtol=0.1)


@pytest.mark.parametrize("n_trials", [32, 100])
def test_slopes_stay_bounded_where_binomial_is_asked_for(n_trials):
    """A penalty of 0.01 a^2 / 2 for each slope a against a likelihood of at most log 2 for each of all trials."""
    with pytest.warns() as warned:
        found = fitting.fit_item_model(
            attempts(n_trials=n_trials), Variational(family="binomial", single_precision=False)
        )
    data, convergence = (
        " ".join(str(one.message) for one in warned if one.category is kind)
        for kind in (DataWarning, ConvergenceWarning)
    )
    assert "Use family 'beta-binomial'." in data
    assert "(intra-class correlation 0.002)" in fitting.Agreement(0.002, 9.0).finding
    for words in ("slopes should be at most 20 logits", "'item-", "use family 'beta-binomial'"):
        assert words in convergence
    assert np.abs(found.parameters.loadings).max() < np.sqrt(2.0 * 27 * 30 * n_trials * np.log(2.0) / 0.01)
    assert np.all(np.diff(found.history[-20:]) >= -1e-9 * np.abs(found.history[-1]))


@pytest.mark.filterwarnings("ignore:slopes should be:itembank.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:calibration did not:itembank.errors.ConvergenceWarning")
@pytest.mark.parametrize("spec", [MarginalML(max_iterations=5), JointMAP("nested", n_dims=2, max_iterations=20)])
def test_a_method_without_the_family_says_which_has_it(spec):
    assert not has_family(spec, "beta-binomial")
    with pytest.warns(DataWarning, match="which the variational method has"):
        assert fitting.fit_item_model(attempts(n_trials=8), spec).parameters.family == "binomial"


def test_dimensions_are_chosen_of_agreeing_attempts_without_a_word():
    assert choose_n_dims(attempts(24, 30, n_trials=10), candidates=(1, 2)).n_dims == 1


@pytest.fixture(scope="module")
def siblings():
    """Those who guess alike lead a 2PL with slopes of both signs astray: its abilities are not skill."""
    return guessing_siblings()


def correlation(one, other):
    return float(np.corrcoef(one, other)[0, 1])


@pytest.mark.filterwarnings("ignore:slopes should be at most")
@pytest.mark.parametrize("spec", [Variational("2pl"), JointMAP("2pl")])
def test_slopes_of_both_signs_follow_guesses_and_it_is_said(siblings, spec):
    skill, responses = siblings
    with pytest.warns(DataWarning, match=r"not skill: their correlation with the models' scores is -?0\.\d\d, less"):
        found = fitting.fit_item_model(responses, spec)
    score = responses.responses.mean(axis=1)
    assert found.score_correlation == pytest.approx(correlation(found.abilities[:, 0], score), abs=1e-9)
    assert abs(correlation(found.abilities[:, 0], skill)) < 0.5


@pytest.mark.parametrize("spec", [default_spec, Variational("2pl", positive_discrimination=True), Variational("1pl")])
def test_slopes_above_zero_follow_skill(siblings, spec, recwarn):
    """As the warning advises, and as laws of scaling fit right and wrong answers."""
    skill, responses = siblings
    found = fitting.fit_item_model(responses, spec(responses) if callable(spec) else spec)
    assert found.score_correlation > 0.75
    assert correlation(found.abilities[:, 0], skill) > 0.6
    assert found.caution == ""
    assert not [one for one in recwarn if "skill" in str(one.message)]


def test_repr_page_and_file_say_it(siblings, tmp_path):
    with pytest.warns(DataWarning, match="abilities are not skill"):
        bank = calibrate(siblings[1], Variational("2pl"))
    save_bank(bank, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    assert "Take item model '1pl', or the variational '2pl' with positive" in loaded.calibration.caution
    assert loaded.calibration.caution in repr(loaded)
    assert loaded.calibration.caution in str(bank_page(loaded).lead)
    record = json.loads((tmp_path / "bank" / "bank.json").read_text())["calibration"]["score_correlation"]
    assert loaded.calibration.score_correlation == record == bank.calibration.score_correlation


def test_abilities_on_the_arc_challenge_are_not_skill(shared_dir):
    """Of 90 encoders; 34 % of the slopes are negative, and slopes above zero bring the correlation to .92."""
    table = pl.read_parquet(shared_dir / "data" / "nlu29" / "irsl8.parquet")
    table = table.filter(pl.col("scenario") == "arc-challenge")
    wide = table.pivot(on="item_id", index="model_id", values="response").drop("model_id")
    responses = ResponseMatrix.create(wide.to_numpy().astype(float), scenarios=["arc-challenge"] * wide.width)
    with pytest.warns(DataWarning, match="items of 'arc-challenge': The abilities are not skill"):
        assert fitting.fit_item_model(responses, Variational("2pl")).score_correlation < 0.7
    assert fitting.fit_item_model(responses, default_spec(responses)).score_correlation > 0.85


def test_the_correlation_is_pearsons_and_signed():
    rng = np.random.default_rng(0)
    answers, one = (rng.random((30, 40)) < 0.5).astype(float), rng.normal(size=(30, 1))
    data, score = FitData(answers, None, np.zeros(40)), answers.mean(axis=1)
    wanted = correlation(one[:, 0], score)
    assert [fitting.score_correlation(data, sign * one) for sign in (1, -1)] == pytest.approx(
        [wanted, -wanted], abs=1e-12
    )
    uncopied = FitData(answers, None, np.zeros(40), columns=np.arange(40))
    assert fitting.score_correlation(uncopied, one) == pytest.approx(wanted, abs=1e-6)
    two = np.column_stack([one, rng.normal(size=30)])
    fitted = np.column_stack([np.ones(30), two])
    best = fitted @ np.linalg.lstsq(fitted, score, rcond=None)[0]
    assert fitting.score_correlation(data, two) == pytest.approx(correlation(best, score), abs=1e-9)


def test_models_are_compared_over_the_items_that_they_share():
    """Strong models answered hard items and weak ones easy items: their means say the opposite of their skill."""
    rng, ability = np.random.default_rng(1), np.linspace(-2.0, 2.0, 40)
    difficulty = np.repeat([-4.0, 0.0, 4.0], [60, 10, 60])
    answers = (rng.random((40, 130)) < expit(ability[:, None] - difficulty)).astype(float)
    observed = np.ones((40, 130), dtype=bool)
    observed[:20, 70:], observed[20:, :60] = False, False
    answers = np.where(observed, answers, 0.0)
    assert correlation(ability, answers.sum(axis=1) / observed.sum(axis=1)) < -0.5
    assert fitting.score_correlation(FitData(answers, observed, np.zeros(130)), ability[:, None]) > 0.7
