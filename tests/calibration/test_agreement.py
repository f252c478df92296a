import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import betabinom, binom

from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational, has_family
from itembank.calibration.dimensions import choose_n_dims
from itembank.calibration.fit_item_model import Agreement, agreement_beyond, fit_item_model
from itembank.calibration.fits import Fit, FitData
from itembank.errors import ConvergenceWarning, DataWarning
from itembank.estimation.folds import spec_of
from itembank.irt.parameters import AbilityPrior
from itembank.responses.responses import ResponseMatrix

AGREE = "attempts at one item agree more than chance"


def one_cell(right, trials, logit, doubt=0.0):
    """One model, one item, whose logit is known but for the variance of the intercept."""
    covariance = np.zeros((1, 2, 2))
    covariance[0, 1, 1] = doubt
    fit = Fit(
        np.zeros((1, 1)),
        np.array([logit]),
        covariance,
        np.zeros((1, 1)),
        np.zeros((1, 1, 1)),
        AbilityPrior.standard(1),
        True,
        1,
        "",
        np.zeros(1),
    )
    rates = np.array([[right / trials]])
    return agreement_beyond(FitData(rates, None, np.zeros(1), family="binomial", n_trials=np.array([[trials]])), fit)


def answers(n_models=27, n_items=30, *, n_trials, seed=0, correlation=1.0):
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


def test_single_answers_say_nothing_of_agreement():
    assert one_cell(1.0, 1.0, -3.0, doubt=0.5) == Agreement(0.0, 0.0)


def test_what_the_fit_has_taken_from_the_pairs_is_given_back():
    """The posterior variance of a chance p is that of the logit times (p (1 - p))^2, where it is small."""
    chance = expit(0.5)
    gain = one_cell(3.0, 5.0, 0.5, doubt=1e-4).correlation - one_cell(3.0, 5.0, 0.5).correlation
    drift = 0.5 * 1e-4 * (1.0 - 2.0 * chance)  # the mean chance moves too, to which the pairs answer
    assert gain == pytest.approx(1e-4 * chance * (1.0 - chance), abs=3.0 * abs(drift))
    assert gain > 0.0


@pytest.mark.parametrize("spec", [Variational(), JointMAP(), MarginalML()])
def test_independent_attempts_stay_binomial(spec):
    found = [fit_item_model(answers(n_trials=n, seed=seed, correlation=0.0), spec) for n, seed in ((2, 1), (40, 2))]
    assert {one.parameters.family for one in found} == {"binomial"}


@pytest.mark.parametrize("correlation", [0.3, 1.0])
def test_agreeing_attempts_are_taken_for_what_they_are(correlation):
    responses = answers(40, 60, n_trials=20, correlation=correlation)
    with pytest.warns(DataWarning, match=AGREE) as warned:
        found = fit_item_model(responses)
    assert len(warned) == 1
    said = float(str(warned[0].message).split("correlation ")[1].split(")")[0])
    assert said == pytest.approx(correlation, abs=0.06)
    assert found.parameters.family == "beta-binomial"
    assert 1.0 / (found.parameters.precision[0] + 1.0) == pytest.approx(correlation, abs=0.06)
    assert spec_of(found).family == "beta-binomial"
    assert "family" not in found.options


def test_identical_attempts_say_what_one_of_them_says():
    single = fit_item_model(answers(n_trials=1))
    with pytest.warns(DataWarning, match=AGREE):
        repeated = fit_item_model(answers(n_trials=100))
    assert_allclose(repeated.parameters.loadings, single.parameters.loadings, atol=0.15)
    assert_allclose(repeated.abilities, single.abilities, atol=0.1)
    assert_allclose(repeated.standard_errors, single.standard_errors, rtol=0.1)


@pytest.mark.parametrize("n_trials", [32, 100])
def test_slopes_stay_bounded_where_binomial_is_asked_for(n_trials):
    """A penalty of 0.01 a^2 / 2 for each slope a against a likelihood of at most log 2 for each of all trials."""
    with pytest.warns() as warned:
        found = fit_item_model(answers(n_trials=n_trials), Variational(family="binomial", single_precision=False))
    texts = {
        kind: " ".join(str(one.message) for one in warned if one.category is kind)
        for kind in (DataWarning, ConvergenceWarning)
    }
    assert "Use family 'beta-binomial'." in texts[DataWarning]
    assert "(intra-class correlation 0.002)" in Agreement(0.002, 9.0).finding
    assert "slopes should be at most 20 logits" in texts[ConvergenceWarning]
    assert "'item-" in texts[ConvergenceWarning]
    assert "use family 'beta-binomial'" in texts[ConvergenceWarning]
    assert np.abs(found.parameters.loadings).max() < np.sqrt(2.0 * 27 * 30 * n_trials * np.log(2.0) / 0.01)
    assert np.all(np.diff(found.history[-20:]) >= -1e-9 * np.abs(found.history[-1]))


@pytest.mark.filterwarnings("ignore:slopes should be:itembank.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:calibration did not:itembank.errors.ConvergenceWarning")
@pytest.mark.parametrize("spec", [MarginalML(max_iterations=5), JointMAP("nested", n_dims=2, max_iterations=20)])
def test_a_method_without_the_family_says_which_has_it(spec):
    assert not has_family(spec, "beta-binomial")
    with pytest.warns(DataWarning, match="which the variational method has"):
        assert fit_item_model(answers(n_trials=8), spec).parameters.family == "binomial"


def test_dimensions_are_chosen_of_agreeing_attempts_without_a_word():
    assert choose_n_dims(answers(24, 30, n_trials=10), candidates=(1, 2)).n_dims == 1
