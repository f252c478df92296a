"""Smooth regression on sub-score and ability: known truth, missing items, few models."""

import numpy as np
import pytest

from itembank_rivals.metabench import predict_metabench


def problem(rng, n_train=200, n_new=50, n_columns=30):
    """Score a curved function of ability; responses to few items."""
    ability = rng.normal(size=n_train + n_new)
    chance = 1.0 / (1.0 + np.exp(-ability[:, None] - rng.normal(size=n_columns)))
    responses = (rng.random(chance.shape) < chance).astype(float)
    scores = np.column_stack([0.5 + 0.4 * np.tanh(2.0 * ability), 0.3 + 0.2 * np.sin(1.5 * ability)])
    estimate = ability[:, None] + rng.normal(0.0, 0.1, (n_train + n_new, 1))
    one, two = slice(0, n_train), slice(n_train, None)
    return responses[one], scores[one], responses[two], scores[two], estimate[one], estimate[two]


def test_recovers_curved_scores(rng):
    train, scores, new, truth, known, asked = problem(rng)
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    lines = np.column_stack([np.ones(200), train.mean(axis=1), known])
    linear = np.column_stack([np.ones(50), new.mean(axis=1), asked]) @ np.linalg.lstsq(lines, scores)[0]
    assert np.abs(found - truth).mean() < 0.04
    assert np.abs(found - truth).mean() < 0.8 * np.abs(linear - truth).mean()


def test_few_models_fall_back_to_lines_and_to_the_mean(rng):
    train, scores, new, truth, known, asked = problem(rng, n_train=12)
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    assert np.abs(found - truth).mean() < 0.7 * np.abs(scores.mean(axis=0) - truth).mean()
    few = predict_metabench(train[:4], scores[:4], new, train_abilities=known[:4], new_abilities=asked)
    np.testing.assert_allclose(few, np.tile(scores[:4].mean(axis=0), (50, 1)))


def test_a_linear_relation_is_found_exactly(rng):
    train, _, new, _, known, asked = problem(rng, n_train=12)
    scores = 0.1 + 0.6 * train.mean(axis=1, keepdims=True)
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    np.testing.assert_allclose(found[:, 0], 0.1 + 0.6 * new.mean(axis=1), atol=1e-9)


def test_sub_scores_follow_each_targets_weights(rng):
    train, _, new, _, known, asked = problem(rng, n_train=15)
    weights = np.zeros((30, 3))
    weights[:10, 0], weights[10:, 1] = 2.0, rng.uniform(0.5, 2.0, 20)  # the third has no items of its own
    scores = np.column_stack(
        [train[:, :10].mean(axis=1), train @ weights[:, 1] / weights[:, 1].sum(), train.mean(axis=1)]
    )
    expected = np.column_stack([new[:, :10].mean(axis=1), new @ weights[:, 1] / weights[:, 1].sum(), new.mean(axis=1)])
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked, column_weights=weights)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("holed", [True, False])
def test_a_column_that_a_model_did_not_answer_is_as_if_absent_for_it(rng, holed):
    train, scores, new, _, known, asked = problem(rng, n_train=60)
    if holed:
        train[rng.random(train.shape) < 0.1] = np.nan
        scores[:5, 0] = np.nan
    gone = new.copy()
    gone[:20, 3] = np.nan
    found = predict_metabench(train, scores, gone, train_abilities=known, new_abilities=asked)
    kept = np.delete(np.arange(30), 3)
    without = predict_metabench(train[:, kept], scores, new[:, kept], train_abilities=known, new_abilities=asked)
    whole = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    np.testing.assert_allclose(found[:20], without[:20], atol=1e-10)
    np.testing.assert_allclose(found[20:], whole[20:], atol=1e-10)


def test_nothing_answered_gives_the_mean_score(rng):
    train, scores, new, _, known, asked = problem(rng, n_train=30)
    new[0] = np.nan
    found = predict_metabench(train, scores, new, train_abilities=known, new_abilities=asked)
    np.testing.assert_allclose(found[0], scores.mean(axis=0))
