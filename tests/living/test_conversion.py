import numpy as np
import pytest
from scipy import stats

from itembank.banks import convert, retire, with_target
from itembank.errors import BankError, DataError, ParameterError
from itembank.living.conversion import predicted
from tests.living.living import named_bank


def scores_of(bank):
    """Overall score of each model."""
    return bank.targets.with_overall(bank.targets.scenario_means(bank.responses.responses))[:, -1]


def test_the_line_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    x = rng.random(12)
    y = 0.2 + 0.7 * x + 0.05 * rng.normal(size=12)
    line = stats.linregress(x, y)
    estimate, error, slope = predicted(x, y, 0.4)
    assert slope == pytest.approx(line.slope)
    assert estimate == pytest.approx(line.intercept + 0.4 * line.slope)
    # standard error of the mean at 0.4, by those of slope and intercept, and the scatter around it
    scatter = np.sum((y - line.intercept - line.slope * x) ** 2) / 10
    of_mean = line.stderr**2 * (0.4 - x.mean()) ** 2 + scatter / 12
    assert error == pytest.approx(np.sqrt(scatter + of_mean))
    assert predicted(np.full(5, 0.5), np.arange(5.0), 0.5)[0] == 2.0


def test_intervals_hold_the_scores_of_further_models():
    held, n = 0, 0
    for seed in range(4):
        bank = retire(named_bank(n_models=60, n_items=60, seed=seed), [f"math/{k}" for k in (0, 3, 6, 9)], reason="bad")
        old, new = scores_of(with_target(bank, "quiz@1")), scores_of(bank)
        for one in range(60):
            others = np.delete(np.arange(60), one)
            estimate, error, _ = predicted(old[others], new[others], old[one])
            held += abs(new[one] - estimate) <= stats.t.ppf(0.975, 57) * error
            n += 1
    assert 0.90 <= held / n <= 0.99


def test_what_was_estimated_is_less_sure():
    bank = retire(named_bank(n_models=30), ["math/0", "code/1"], reason="bad")
    sure = convert(bank, 0.5, of="quiz@1", to="quiz@2").rows()[0]
    slope = predicted(scores_of(with_target(bank, "quiz@1")), scores_of(bank), 0.5)[2]
    unsure = convert(bank, {"overall": 0.5}, of="quiz@1", to="quiz@2", standard_error=0.05).rows()[0]
    assert unsure["standard_error"] == pytest.approx(np.hypot(sure["standard_error"], 0.05 * slope))
    assert (sure["of"], sure["to"], sure["n_models"], sure["target"]) == ("quiz@1", "quiz@2", 30, "overall")
    assert convert(bank, {"law": 0.4}, to="quiz@1").rows()[0]["standard_error"] == pytest.approx(0.0, abs=1e-9)


def test_what_cannot_be_converted_is_refused():
    bank = retire(named_bank(n_models=30), ["math/0", "code/1"], reason="bad")
    with pytest.raises(BankError, match="Did you mean 'quiz@1'"):
        convert(bank, 0.5, to="quizz@1")
    with pytest.raises(ParameterError, match=r"scores must be numbers from 0 to 1, got .*Divide percentages by 100"):
        convert(bank, 50, to="quiz@1")
    with pytest.raises(ParameterError, match="Did you mean 'math'"):
        convert(bank, {"maths": 0.5}, to="quiz@1")
    with pytest.raises(ParameterError, match="standard_error must be"):
        convert(bank, 0.5, to="quiz@1", standard_error=2)
    with pytest.raises(DataError, match=r"needs 10 models .* and the bank has 9"):
        convert(retire(named_bank(n_models=9), ["math/0"], reason="bad"), 0.5, to="quiz@1")
    with pytest.warns(match="its conversion is extrapolated"):
        convert(bank, 1.0, to="quiz@1")
