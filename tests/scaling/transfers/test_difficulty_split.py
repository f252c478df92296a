import numpy as np

from itembank.scaling.transfers.difficulty_split import item_means, split_by_difficulty


def test_means_of_complete_responses_are_means(rng):
    responses = rng.random((20, 7))
    np.testing.assert_allclose(item_means(responses), responses.mean(axis=0))


def test_who_answered_does_not_make_an_item_easy():
    # both items are as hard for a given model; strong models answered the first, weak ones the second
    strong, weak = [0.9, 0.9, np.nan, 0.9], [0.1, np.nan, 0.1, 0.1]
    means = item_means(np.array([strong] * 5 + [weak] * 5, dtype=float))
    assert means[1] == means[2]
    assert np.isnan(item_means(np.array([[1.0, np.nan], [0.0, np.nan]]))[1])


def test_halves_are_easy_and_hard_and_hold_every_item_once(rng):
    responses = (rng.random((50, 31)) < rng.random(31)).astype(float)
    easy, hard = split_by_difficulty(responses, 0.5)
    assert (easy.size, hard.size) == (16, 15)
    assert sorted([*easy, *hard]) == list(range(31))
    means = responses.mean(axis=0)
    assert means[easy].min() >= means[hard].max()
    easy, hard = split_by_difficulty(responses, 0.01)
    assert (easy.size, hard.size) == (1, 30)


def test_ties_go_by_place():
    easy, hard = split_by_difficulty(np.zeros((3, 4)), 0.5)
    np.testing.assert_array_equal(easy, [0, 1])
    np.testing.assert_array_equal(hard, [2, 3])
