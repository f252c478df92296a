import numpy as np

from itembank.bank.past_models import PastModels, is_name_digest, name_digest

SCORES = np.array([0.7, np.nan, 0.9])


def test_the_lowest_and_the_highest_score_are_of_those_known():
    past = PastModels(("a", "b", "c"), SCORES)
    assert past.ends == (0.7, 0.9)
    assert past.known(["new", "c", "a"]) == ("c", "a")
    assert np.isnan(PastModels((), np.zeros(0)).ends).all()
    assert np.isnan(PastModels(("b",), SCORES[1:2]).ends).all()


def test_models_are_known_again_by_digests_of_their_names():
    names = ("org/Model-1", "gpt-4o", "b")
    past = PastModels(tuple(name_digest(name, "salt") for name in names), SCORES, "salt")
    assert past.known(["GPT_4o", "openai/gpt-4o", "org/model 1", "Model-1", "gpt-4"]) == (
        *("GPT_4o", "openai/gpt-4o"),
        "org/model 1",
    )
    assert name_digest("b", "salt") != name_digest("b", "other")
    assert is_name_digest(past.names[0])
    assert not is_name_digest("B" * 16)


def test_scores_may_be_known_without_names():
    past = PastModels((), np.array([0.8]))
    assert past.known(["a"]) == ()
    assert past.ends == (0.8, 0.8)
