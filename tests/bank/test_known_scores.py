import dataclasses
import itertools

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.known_scores import (
    ENOUGH,
    KnownScores,
    check_external_names,
    external_names,
    fraction_answered,
    sampling_variance,
    win_rate_headline,
    with_external_scores,
)
from itembank.bank.marks import with_batch
from itembank.bank.past_models import PastModels, is_name_digest, name_digest
from itembank.banks import with_target
from itembank.errors import BankError, DataError, IntegrityError, ParameterError
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank_living import add_scores
from tests.bank.banks import make_bank


def targets_of(*sizes, weights=None):
    scenario = [f"s{j}" for j, size in enumerate(sizes) for _ in range(size)]
    items = pl.DataFrame({"item_id": [str(i) for i in range(len(scenario))], "scenario": scenario, "subscenario": None})
    if weights is None:
        return ScoreTargets.create(items)
    return ScoreTargets.create(items.with_columns(weight=pl.Series(weights)), within="custom")


def test_all_scores_of_complete_models_are_known_exactly_and_items_that_do_not_count_need_no_answer():
    bank = make_bank(n_models=4)
    found = bank.known_scores
    np.testing.assert_array_equal(found.value, bank.targets.with_overall(bank.scenario_scores))
    np.testing.assert_array_equal(found.variance, 0.0)
    np.testing.assert_array_equal(found.models, np.arange(4))
    targets = targets_of(4, weights=[0.1, 0.2, 0.7, 0.0])
    responses = np.array([[1.0, 0.0, 1.0, np.nan], [1.0, np.nan, 1.0, 0.0]])
    np.testing.assert_allclose(fraction_answered(responses, targets)[:, 0], [1.0, 0.8])
    assert sampling_variance(responses, targets)[:2, 0].tolist() == [0.0, 0.0]  # of the second, both answers alike


def test_sampling_variance_is_unbiased_over_all_draws_of_items(rng):
    responses, n = rng.random(7), 4
    drawn = np.full((35, 7), np.nan)
    for row, columns in enumerate(itertools.combinations(range(7), n)):
        drawn[row, columns] = responses[list(columns)]
    means = np.nanmean(drawn, axis=1)
    found = sampling_variance(drawn, targets_of(7))[:, 0]
    assert found.mean() == pytest.approx(np.mean((means - responses.mean()) ** 2))


def test_a_score_is_known_scenario_by_scenario_from_half_of_the_items_if_few_models_are_complete():
    responses = np.tile([1.0, 0.0], (ENOUGH + 3, 10))
    responses[ENOUGH, 10:] = np.nan  # nothing of the second scenario
    responses[ENOUGH + 1, :4] = np.nan  # six tenths of the first
    responses[ENOUGH + 2, :2] = np.nan  # eight tenths
    found = KnownScores.of(ResponseMatrix.create(responses), targets_of(10, 10))
    assert found.is_known[ENOUGH:].tolist() == [[True, False, False], [False, True, False], [True, True, True]]
    assert found.is_known.sum(axis=0).tolist() == [ENOUGH + 2, ENOUGH + 2, ENOUGH + 1]
    of_scenario = 0.2 * (2.0 / 7.0) / 8.0  # (1 - f) S^2 / n
    np.testing.assert_allclose(found.variance[-1], [of_scenario, 0.0, of_scenario / 4.0])
    responses = np.tile([1.0, 0.0], (ENOUGH + 2, 10))
    responses[ENOUGH - 1 :, :8] = np.nan
    responses[-1, :12] = np.nan
    found = KnownScores.of(ResponseMatrix.create(responses), targets_of(20))
    np.testing.assert_array_equal(found.models, np.arange(ENOUGH + 1))
    found = KnownScores.of(ResponseMatrix.create(np.array([[1.0, np.nan], [1.0, 0.0]])), targets_of(2))
    assert found.is_known.tolist() == [[False, False], [True, True]]


MODELS = pl.DataFrame({"model_id": ["a", "b", "c"], "size": [1, 2, 3]})


def test_win_rates_of_past_models_are_those_of_counting_pairs():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (12, 3)) / 4.0  # many ties
    scores[3, 1] = np.nan  # neither ranked nor ranked against
    found = win_rate_headline(scores, 0.0 * scores)
    known = [m for m in range(12) if m != 3]
    for model in known:
        pairs = itertools.product([other for other in known if other != model], range(3))
        wins = [(scores[model, j] > scores[r, j]) + 0.5 * (scores[model, j] == scores[r, j]) for r, j in pairs]
        assert found.past[model] == pytest.approx(np.mean(wins), abs=1e-12)
    assert np.isnan(found.past[3])
    new = np.vstack([rng.random((4, 3)), [0.5, np.nan, 0.5]])
    expected = [np.mean([new[m] > scores[r] for r in known]) for m in range(4)]
    np.testing.assert_allclose(found.win_rates(new)[:4], expected)
    assert np.isnan(found.win_rates(new)[4])
    fewer = found.without([0, 1]).win_rates(new[:1])
    assert fewer[0] == pytest.approx(np.mean([new[0] > scores[r] for r in known[2:]]))


def test_win_rates_against_rivals_with_gaps_are_known_up_to_a_variance():
    """They were called exact."""
    rng = np.random.default_rng(1)
    scores, gaps, new = rng.random((15, 2)), rng.choice([0.0, 0.01], (15, 2)), rng.random((3, 2))
    scores[4] = np.nan
    found = win_rate_headline(scores, gaps)
    drawn = scores + np.sqrt(gaps) * rng.normal(size=(20_000, 15, 2))
    known = [k for k in range(15) if k != 4]
    rates = (new[:, None, None] > drawn[:, known]).mean(axis=(2, 3))
    np.testing.assert_allclose(found.variance_by_rivals(new), rates.var(axis=1), rtol=0.05)
    rates = (new[:, None, None] > drawn[:, known[3:]]).mean(axis=(2, 3))
    np.testing.assert_allclose(found.without([0, 1, 2]).variance_by_rivals(new), rates.var(axis=1), rtol=0.05)
    assert not win_rate_headline(scores, 0.0 * gaps).variance_by_rivals(new).any()


def test_external_scores_join_by_model_and_points_become_fractions():
    table = pl.DataFrame({"model_id": ["c", "a", "z"], "mmlu": [61.0, None, 40.0], "arc": [0.25, 1.0, float("nan")]})
    found = with_external_scores(MODELS, table, ["mmlu", "arc"])
    assert (found["model_id"].to_list(), found["score.mmlu"].to_list()) == (["a", "b", "c"], [None, None, 0.61])
    assert found["score.arc"].to_list() == [1.0, None, 0.25]
    assert external_names(found) == ("mmlu", "arc")
    again = with_external_scores(found, table.with_columns(mmlu=pl.lit(10)), ["mmlu"])
    assert again["score.mmlu"].to_list() == [0.1, None, 0.1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"model_id": ["a"], "arc": [0.5]}, "got no 'mmlu'"),
        ({"model_id": ["a", "a"], "mmlu": [0.5, 0.6]}, "one line a model, got more for 'a'"),
        ({"model_id": ["a", "b"], "mmlu": [0.5, 140.0]}, "from 0 to 1, or points up to 100, got '140"),
        ({"model_id": ["a", "b"], "mmlu": ["0.5", "good"]}, "got 'good'"),
        ({"model_id": ["x", "y"], "mmlu": [0.5, 0.4]}, "Check that both name models alike"),
    ],
)
def test_tables_that_hold_no_scores_are_refused(table, message):
    with pytest.raises(DataError, match=message):
        with_external_scores(MODELS, pl.DataFrame(table), ["mmlu"])


def test_a_bank_keeps_external_scores_and_its_items_score(tmp_path):
    bank = make_bank()
    scores = pl.DataFrame({"model_id": bank.responses.model_ids, "board": np.linspace(20.0, 90.0, 12)})
    save_bank(add_scores(bank, scores, ["board"], note="May"), tmp_path / "bank")
    kept = load_bank(tmp_path / "bank")
    assert kept.history.changes[-1].operation == "add-scores"
    view = with_target(kept, "board")
    assert view.targets.names == ("math", "code", "law", "board")
    np.testing.assert_allclose(view.past_scores[:, -1], np.linspace(0.2, 0.9, 12))
    np.testing.assert_array_equal(view.past_scores[:, :-1], kept.past_scores[:, :-1])
    assert (view.bank_id, view.target_digest) == (bank.bank_id, bank.target_digest)
    assert with_target(view, "board") is view
    with pytest.raises(BankError, match=r"the score 'board'\. Write the bank itself"):
        save_bank(view, tmp_path / "other")
    with pytest.raises(BankError, match="'board'"):
        with_target(kept, "bord")


def test_names_and_numbers_that_give_no_target_are_refused():
    bank = make_bank()
    few = pl.DataFrame({"model_id": bank.responses.model_ids[:5], "board": [0.1] * 5})
    with pytest.raises(DataError, match=r"needs at least 10 past models .*got 5"):
        with_target(add_scores(bank, few, ["board"]), "board")
    for name in ("overall", "mean_win_rate", "law", "all"):
        with pytest.raises(ParameterError, match=f"a name of its own, got {name!r}"):
            check_external_names([name], bank.targets.scenarios)
    with pytest.raises(ParameterError, match="at least one"):
        add_scores(bank, few, [])
    for wrong in ("good", 1.5):
        models = bank.responses.models.with_columns(pl.lit(wrong).alias("score.board"))
        strange = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, models=models))
        with pytest.raises(IntegrityError, match="something else than itembank wrote it"):
            with_target(strange, "board")


SCORES = np.array([0.7, np.nan, 0.9])


def test_the_lowest_and_highest_score_and_the_difficulty_are_of_what_is_known():
    past = PastModels(("a", "b", "c"), SCORES)
    assert past.ends == (0.7, 0.9)
    assert past.known(["new", "c", "a"]) == ("c", "a")
    assert np.isnan(PastModels((), np.zeros(0)).ends).all()
    assert np.isnan(PastModels(("b",), SCORES[1:2]).ends).all()
    bank = make_bank(n_dims=1)
    table = bank.items.filter(~bank.items["is_degenerate"])
    known = table.filter(table["loading_1_error"] < 0.2 * table["loading_1"].abs())
    logits = known["loading_1"] * known["difficulty"] + known["intercept"]
    assert known.height > 5
    np.testing.assert_allclose(logits, 0.0, atol=0.25)


def test_models_are_known_again_by_digests_of_their_names_and_scores_without():
    names = ("org/Model-1", "gpt-4o", "b")
    past = PastModels(tuple(name_digest(name, "salt") for name in names), SCORES, "salt")
    known = ("GPT_4o", "openai/gpt-4o", "org/model 1")
    assert past.known([*known, "Model-1", "gpt-4"]) == known
    assert name_digest("b", "salt") != name_digest("b", "other")
    assert [is_name_digest(name) for name in (past.names[0], "B" * 16)] == [True, False]
    past = PastModels((), np.array([0.8]))
    assert (past.known(["a"]), past.ends) == ((), (0.8, 0.8))


@pytest.mark.parametrize("n_dims", [1, 3])
def test_items_are_a_table_of_their_parameters(n_dims):
    bank = make_bank(n_dims=n_dims)
    table, errors = bank.items, np.sqrt(np.einsum("ijj->ij", bank.calibration.item_covariance))
    assert table["item_id"].to_list() == bank.item_ids
    for k in range(n_dims):
        np.testing.assert_array_equal(table[f"loading_{k + 1}"], bank.parameters.loadings[:, k])
        np.testing.assert_allclose(table[f"loading_{k + 1}_error"], errors[:, k], rtol=1e-12)
    np.testing.assert_array_equal(table["intercept"], bank.parameters.intercept)
    np.testing.assert_allclose(table["mean_response"], np.nanmean(bank.responses.responses, axis=0))
    assert ("difficulty" in table.columns) == (n_dims == 1)


def test_a_score_without_answers_to_linked_items_is_as_the_item_model_says_of_them():
    bank = make_bank()
    complete, is_new = bank.known_scores.value, np.arange(30) >= 27  # an item of each scenario
    values = np.where(is_new & (np.arange(12) < 5)[:, None], np.nan, bank.responses.responses)
    responses = dataclasses.replace(bank.responses, responses=values)
    responses = with_batch(responses, is_new, "1.0.0", 0.01)
    binary = dataclasses.replace(bank.calibration, thresholds={})
    linked = dataclasses.replace(bank, responses=responses, calibration=binary)
    likely = probability(bank.parameters, bank.calibration.abilities)
    hand = np.mean((values - likely)[:5, :27:3], axis=1) + likely[:5, ::3].mean(axis=1)
    np.testing.assert_allclose(linked.known_scores.value[:5, bank.targets.scenarios.index("math")], hand.clip(0.0, 1.0))
    np.testing.assert_array_equal(linked.known_scores.value[5:], complete[5:])
    # graded responses spread less than answers above or below a threshold, which the item model expects
    graded = dataclasses.replace(responses, responses=0.4 + 0.2 * np.where(np.isnan(values), np.nan, likely))
    calibration = dataclasses.replace(binary, thresholds=dict.fromkeys(bank.targets.scenarios, 0.5))
    linked = dataclasses.replace(bank, responses=graded, calibration=calibration)
    whole = bank.targets.with_overall(bank.targets.scenario_means(0.4 + 0.2 * likely))
    np.testing.assert_allclose(linked.known_scores.value, whole)
