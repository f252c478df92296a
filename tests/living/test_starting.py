"""Banks begun with no past models, or few: known values, enumeration, and intervals that hold."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

import itembank as ib
from itembank.bank.selections import Selection
from itembank.calibration.starting import PRIOR_ANSWERS, SMALLEST_MEAN, calibration_of_few, start
from itembank.errors import DataError, DataWarning
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.session_spec import SessionSpec

ITEMS = pl.DataFrame(
    {
        "item_id": [f"q{number}" for number in range(60)],
        "scenario": ["easy"] * 40 + ["hard"] * 20,
        "subscenario": ["x", "y"] * 30,
    }
)


def answers(n_models: int, rng: np.random.Generator, n_items: int = 60) -> ResponseMatrix:
    """Answers of models to the first items of the table, at the same chance for all."""
    values = (rng.random((n_models, n_items)) < 0.6).astype(float)
    return ResponseMatrix.create(values, items=ITEMS.head(n_items))


def one_model() -> ResponseMatrix:
    """Answers of one model to everything."""
    return ResponseMatrix.create(np.ones((1, 60)), items=ITEMS)


def test_scenarios_of_the_table_count_and_that_is_said():
    moved = ITEMS.with_columns(scenario=pl.col("scenario").replace("hard", "very hard"))
    results = ResponseMatrix.create(np.ones((1, 60)), items=moved)
    with pytest.warns(DataWarning, match=r"scenario of 20 items differs .*'hard' for 'q40'.* \('very hard'\)") as told:
        bank = start(ITEMS, results)
    assert len(told) == 1
    assert bank.targets.scenarios == ("easy", "hard")
    with pytest.warns(DataWarning, match=r"scenario of 60 items differs .*'all' for 'q0'") as told:
        start(ITEMS.select("item_id", "subscenario"), results)
    assert len(told) == 1


def test_answers_may_leave_items_out_but_not_bring_other_ones(rng):
    bank = start(ITEMS, answers(2, rng, n_items=50))
    assert bank.n_items == 60
    assert np.isnan(bank.responses.responses[:, 50:]).all()
    rows = [{"model_id": "m", "item_id": item, "response": k % 2} for k, item in enumerate(bank.item_ids[:50])]
    for table in (rows, pl.DataFrame(rows)):  # it was refused: responses must be a table, got one
        assert start(ITEMS, table).responses.responses[0, :2].tolist() == [0.0, 1.0]
    with pytest.raises(DataError, match=r"q59"):
        start(ITEMS.head(59), answers(1, rng))
    table, found = (ITEMS.with_columns(content_hash=pl.lit(one)) for one in ("new", "old"))
    with pytest.raises(DataError, match="got 60 of 60 with another"):
        start(table, ResponseMatrix.create(np.ones((1, 60)), items=found))
    assert start(ITEMS, answers(10, rng)).calibration.is_fitted


def test_chances_and_intercepts_are_those_of_a_beta_variable(rng):
    def calibrated(values):
        found = calibration_of_few(ResponseMatrix.create(values), np.zeros(values.shape[1], dtype=np.int64))
        return found, probability(found.parameters, np.zeros((1, 1)))[0]

    _, chances = calibrated(np.array([[1.0, 0.0, np.nan, 1.0], [1.0, 1.0, np.nan, 0.0]]))
    mean, n_right, n_all = (4.0 + 0.5) / (6.0 + 1.0), np.array([2.0, 1.0, 0.0, 1.0]), np.array([2.0, 2.0, 0.0, 2.0])
    np.testing.assert_allclose(chances, (n_right + PRIOR_ANSWERS * mean) / (n_all + PRIOR_ANSWERS), rtol=1e-12)
    _, chances = calibrated(np.ones((9, 500)))
    assert chances.max() <= 1.0 - SMALLEST_MEAN * PRIOR_ANSWERS / (9 + PRIOR_ANSWERS)
    found, _ = calibrated(np.array([[1.0, 0.0]]))
    # q = (1 + 1/2) / (2 + 1) = 1/2 here: one right, one wrong
    drawn = logit(rng.beta(1.0 + PRIOR_ANSWERS / 2.0, PRIOR_ANSWERS / 2.0, 400_000))
    assert found.item_covariance[0, 1, 1] == pytest.approx(drawn.var(), rel=0.05)


def test_difficulty_prior_stands_where_it_is_given_and_must_be_a_number():
    bank = start(ITEMS.with_columns(difficulty_prior=pl.Series([1.5, None] * 30)))
    found = probability(bank.parameters, np.zeros((1, 1)))[0]
    np.testing.assert_allclose(found, np.tile([expit(-1.5), 0.5], 30))
    with pytest.raises(DataError, match=r"difficulty_prior must be a finite number of logits.*'q1'"):
        start(pl.DataFrame({"item_id": ["q0", "q1"], "difficulty_prior": ["0.5", "hard"]}))


@pytest.mark.parametrize("n_models", [0, 1, 2, 9, None])
def test_bank_comes_back_from_its_folder_the_same(tmp_path, rng, n_models):
    is_known = n_models is None
    table = ITEMS.with_columns(difficulty=0.5, discrimination=1.5) if is_known else ITEMS
    bank = start(table, answers(n_models, rng) if n_models else None, parameters=is_known)
    bank.save(tmp_path / "bank")
    loaded = ib.load_bank(tmp_path / "bank")
    assert loaded.bank_id == bank.bank_id
    assert loaded.n_models == (n_models or 0)
    assert loaded.calibration.is_fitted == is_known
    np.testing.assert_array_equal(loaded.parameters.intercept, bank.parameters.intercept)


def drawn_from(bank, items, scenarios, probabilities):
    """A selection of items that came by chance."""
    weights = np.full(len(items), 1.0 / scenarios.count(scenarios[0]))
    chances = np.array(probabilities)
    return Selection(items, scenarios, weights, "random", bank.bank_id, inclusion_probabilities=chances)


def test_without_past_models_the_estimate_is_the_sample_mean_of_each_scenario():
    # by hand: no item predicts anything, so the difference estimator is the mean of the answers
    bank, drawn = start(ITEMS), [*range(0, 40, 4), *range(40, 60, 2)]
    items, scenarios = tuple(f"q{number}" for number in drawn), ("easy",) * 10 + ("hard",) * 10
    selection = drawn_from(bank, items, scenarios, [0.25] * 10 + [0.5] * 10)
    values = np.array([[1.0] * 7 + [0.0] * 3 + [1.0] * 4 + [0.0] * 6])
    found = ib.estimate(bank, ResponseMatrix.create(values, items=ITEMS[drawn]), selection=selection)
    assert found.interval_kind == "design"
    np.testing.assert_allclose(found.scores.value, [[0.7, 0.4, 0.55]], atol=1e-9)


def test_own_items_count_as_a_random_sample_with_a_warning(rng):
    bank = start(ITEMS)
    responses = answers(1, rng).take(items=np.arange(0, 60, 3))
    with pytest.warns(DataWarning, match="count as drawn at random"):
        found = ib.estimate(bank, responses)
    means = [responses.responses[0, :14].mean(), responses.responses[0, 14:].mean()]
    np.testing.assert_allclose(found.scores.value[0, :2], means, atol=1e-9)


def test_intervals_hold_for_models_of_every_strength(rng):
    # 60 items that nobody answered before: every model's own coverage over 200 draws of 24 items
    bank = start(ITEMS)
    truth_of = (rng.random((6, 60)) < np.array([[0.1], [0.3], [0.5], [0.7], [0.9], [0.97]])).astype(float)
    responses = ResponseMatrix.create(truth_of, items=ITEMS)
    truth = bank.targets.with_overall(bank.targets.scenario_means(truth_of))
    inside = []
    for seed in range(60):
        found = ib.estimate(bank, responses, selection=ib.select(bank, 24, rng=seed)).scores
        inside.append((found.low - 1e-9 <= truth) & (truth <= found.high + 1e-9))
    # 360 estimates of each target, standard error of 0.95 is 0.0115
    assert np.mean(inside, axis=(0, 1)).min() > 0.90


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("An adaptive session needs", lambda bank: ib.prepare_sessions(bank, SessionSpec())),
        ("Method 'p-irt' needs", lambda bank: ib.estimate(bank, one_model(), method="p-irt")),
        ("A model-based interval needs", lambda bank: ib.estimate(bank, one_model(), interval="model-based")),
        ("correctness need", lambda bank: ib.select(bank, 20, method="anchor-correctness")),
    ],
)
def test_what_needs_an_item_model_says_how_to_get_one(what, call):
    with pytest.raises(DataError, match=rf"{what}.*with 0 past models.*itembank calibrate RESPONSES --items"):
        call(start(ITEMS))


def test_every_sample_of_a_tiny_bank_is_right_on_average():
    # enumeration: the mean of the estimates over all samples of 2 of 4 items is the score
    items, values, estimates = pl.DataFrame({"item_id": list("abcd")}), np.array([[1.0, 0.0, 1.0, 1.0]]), []
    bank = start(items)
    for pair in itertools.combinations(range(4), 2):
        selection = drawn_from(bank, tuple("abcd"[item] for item in pair), ("all",) * 2, [0.5] * 2)
        responses = ResponseMatrix.create(values[:, pair], items=items[list(pair)])
        estimates.append(ib.estimate(bank, responses, selection=selection).scores.value[0, -1])
    assert np.mean(estimates) == pytest.approx(0.75)
